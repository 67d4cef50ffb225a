"""Other programs on the tiny shape: that they do the same work as PyTorch with a hook does."""

import importlib.util
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

from benchmarks.checkpoint import checkpoint, sae_file
from benchmarks.corpus_pairs import corpus_pair
from benchmarks.corpus_results import PassPlan, PeerPass
from benchmarks.peers import CORPUS_PEERS, PEERS
from benchmarks.processes import measure
from benchmarks.prompts import prompt
from benchmarks.results import Plan
from benchmarks.shapes import TINY


def needs(program: str) -> pytest.MarkDecorator:
    reason = (PEERS | CORPUS_PEERS)[program].missing("cpu")
    return pytest.mark.skipif(bool(reason), reason=reason)


def plan(tokens: int = 12) -> Plan:
    return Plan(str(checkpoint(TINY)), TINY.name, "float32", "cpu", tokens, 1)


@pytest.fixture(scope="module")
def torch_ids() -> list[int]:
    return PEERS["torch-float32"].measured(plan()).ids


@needs("torch-float32")
@pytest.mark.parametrize(
    "program", [pytest.param(name, marks=needs(name)) for name in ("saklas-float32", "llama-bf16")]
)
def test_a_peer_writes_what_pytorch_writes(program: str, torch_ids: list[int]) -> None:
    found = PEERS[program].measured(plan())
    assert found.ids == torch_ids
    assert found.features == (program != "llama-bf16")
    assert list(found.first_token_seconds) == [str(length) for length in TINY.prompts]


@needs("llama-bf16")
@pytest.mark.parametrize("quantization", ["none", "q8_0"])
def test_a_gguf_file_has_the_checkpoint_in_it(quantization: Literal["none", "q8_0"], monkeypatch, tmp_path) -> None:
    import gguf
    from safetensors import safe_open

    from benchmarks import gguf_model

    monkeypatch.setattr(gguf_model, "gguf_file", lambda folder, quantization: tmp_path / "model.gguf")
    made = gguf_model.make(msgspec.structs.replace(plan(), gguf=quantization))
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(made.path).tensors}
    expected: dict[str, Any] = {}
    for shard in checkpoint(TINY).glob("*.safetensors"):
        with safe_open(shard, framework="np") as tensors:
            names = tensors.keys()
            expected |= {name: tensors.get_tensor(name).astype(np.float32) for name in names}
    assert len(found) == len(expected)
    down = found["blk.1.ffn_down.weight"]
    assert (down.tensor_type == gguf.GGMLQuantizationType.Q8_0) == (quantization == "q8_0")
    read = gguf.dequantize(down.data, down.tensor_type)
    weight = expected["model.layers.1.mlp.down_proj.weight"]
    assert np.abs(read - weight).max() <= np.abs(weight).max() / 127 * (quantization == "q8_0")
    norm = gguf.dequantize(found["blk.1.attn_norm.weight"].data, gguf.GGMLQuantizationType.F32)
    assert np.array_equal(norm, expected["model.layers.1.input_layernorm.weight"] + np.float32(1))


@needs("torch-float32")
@needs("llama-bf16")
def test_llama_cpp_has_the_logits_of_transformers() -> None:
    import llama_cpp
    import torch
    from transformers import Gemma2ForCausalLM

    from benchmarks import gguf_model

    ids = list(prompt(TINY.name, 24))
    model = llama_cpp.Llama(gguf_model.make(plan()).path, n_ctx=64, logits_all=True, verbose=False)
    model.eval(ids)
    found = np.array(model.scores[: len(ids)])
    reference = Gemma2ForCausalLM.from_pretrained(checkpoint(TINY), dtype=torch.float32, local_files_only=True)
    with torch.inference_mode():
        expected = reference(torch.tensor([ids])).logits[0].numpy()
    assert np.abs(found - expected).max() < 0.05 * expected.std()


@needs("delphi-float32")
@needs("saedashboard-float32")
def test_sae_dashboard_sees_the_firings_that_delphi_sees(tmp_path) -> None:
    pair = corpus_pair(TINY.name, None)
    np.save(tmp_path / "samples.npy", pair.samples)
    orders = PassPlan(str(pair.folder), str(pair.sae), pair.layer, str(tmp_path / "samples.npy"), "float32", "cpu")
    found = measure("sae_dashboard_peer", orders, PeerPass)
    assert found.features is not None
    assert 0 < found.features < TINY.d_sae
    assert 0 < found.half.firings < found.whole.firings
    all_firings = measure("delphi_peer", orders, PeerPass, TQDM_DISABLE="1").whole.firings
    assert found.whole.firings == pytest.approx(all_firings * found.features / TINY.d_sae, rel=0.2)


@pytest.mark.parametrize(("program", "peer"), (PEERS | CORPUS_PEERS).items())
def test_an_absent_peer_names_what_to_install(program: str, peer: Any, monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert " not installed; pip install " in peer.missing("cpu")


def test_a_peer_is_asked_for_on_its_platforms_only(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert PEERS["llama-bf16"].missing("cpu") == ""
    assert PEERS["llama-bf16"].missing("gpu") == "the peer runs on cpu only"


def test_the_threshold_of_the_random_sae_is_one_number() -> None:
    """saklas's ReLU fires for the same features behind a bias lowered by the threshold, whatever it is."""
    with np.load(sae_file(checkpoint(TINY))) as arrays:
        assert len(np.unique(arrays["threshold"])) == 1
        assert not arrays["b_dec"].any()  # which saklas takes from the residual and this project does not
