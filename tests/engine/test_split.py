"""One engine on 1, 2 and 8 virtual CPU devices: a Gemma 2 with the 9B's heads answers the same from parts of it."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config
from neuroscope_jax.models.weights import expected_shapes
from neuroscope_jax.native import kernels
from tests.models.conftest import write_tokenizer
from tests.models.gemma_2_9b import GEMMA_2_9B

pytestmark = pytest.mark.slow

COUNTS, SPLIT = (1, 2, 8), (2, 8)
D_SAE = 1036  # in halves, not in eighths
CONFIG = Gemma2Config(
    vocab_size=368,
    hidden_size=112,
    intermediate_size=448,
    num_hidden_layers=2,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=8,
    query_pre_attn_scalar=8,
    sliding_window=16,
    max_position_embeddings=64,
)


def write_pair(folder: Path) -> None:
    """A random checkpoint in bfloat16 and an SAE, in the layouts of the released ones."""
    rng = np.random.default_rng(9)
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma2", **dataclasses.asdict(CONFIG)}))
    shapes = expected_shapes(Gemma2(CONFIG))
    # Small embeddings, so that the blocks decide what comes next and not the token before.
    scale = {key: 0.02 if "embed" in key else 0.15 for key in shapes}
    tensors = {key: (scale[key] * rng.standard_normal(shapes[key])).astype(ml_dtypes.bfloat16) for key in shapes}
    save_file(tensors, folder / "model.safetensors")
    write_tokenizer(folder)
    encoder = rng.standard_normal((CONFIG.hidden_size, D_SAE), np.float32)
    np.savez(
        folder / "params.npz",
        W_enc=encoder,
        W_dec=np.ascontiguousarray(encoder.T),
        b_enc=rng.standard_normal(D_SAE, np.float32),
        b_dec=np.zeros(CONFIG.hidden_size, np.float32),
        threshold=np.full(D_SAE, 10, np.float32),
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What split_over_devices.py tells of each number of devices."""
    folder = tmp_path_factory.mktemp("pair")
    write_pair(folder)
    return on_eight_devices("split_over_devices", str(folder), *map(str, COUNTS))


def on_eight_devices(program: str, *words: str) -> dict[str, Any]:
    """What a program beside this file tells on a machine with so many CPU devices."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    run = [sys.executable, "-m", f"tests.engine.{program}", *words]
    root = Path(__file__).parents[2]
    done = subprocess.run(run, env=environment, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("count", COUNTS)
def test_an_engine_starts_with_steps_that_are_compiled(found: dict[str, Any], count: int) -> None:
    assert found[str(count)]["made_ready"] == [["prefill_step", "decode_step"], []]


@pytest.mark.parametrize("count", SPLIT)
def test_the_answer_is_that_of_one_device(found: dict[str, Any], count: int) -> None:
    one, split = found["1"]["answer"], found[str(count)]["answer"]
    assert len(set(one["ids"])) > 10
    assert split["ids"] == one["ids"]
    for name in ("logprobs", "prompt_logprobs"):
        np.testing.assert_allclose(split[name], one[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", SPLIT)
def test_so_are_the_features(found: dict[str, Any], count: int) -> None:
    one, split = found["1"]["answer"], found[str(count)]["answer"]
    assert all(one["indices"])
    assert split["indices"] == one["indices"]
    for theirs, ours in zip(one["activations"], split["activations"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


@pytest.mark.parametrize("count", SPLIT)
def test_each_device_holds_its_part_of_the_weights(found: dict[str, Any], count: int) -> None:
    weights = found[str(count)]["weight_bytes"]
    assert len(weights["on_each"]) == count
    assert max(weights["on_each"]) < 1.05 * weights["all"] / count
    assert found[str(count)]["cache_share"] == str(CONFIG.num_key_value_heads // count)


def test_an_sae_that_does_not_divide_is_whole_on_each(found: dict[str, Any]) -> None:
    halves, eighths = found["2"]["sae_bytes"], found["8"]["sae_bytes"]
    assert max(halves["on_each"]) < 0.51 * halves["all"]
    assert eighths["on_each"] == [eighths["all"]] * 8


@pytest.mark.parametrize("count", SPLIT)
def test_no_weight_is_exchanged(found: dict[str, Any], count: int) -> None:
    """What goes between devices are activations: the residual stream, the logits and the features."""
    exchanged = found[str(count)]["exchanged"]
    gathered = {elements for kind, elements in exchanged if kind == "all-gather"}
    assert gathered <= {CONFIG.vocab_size, D_SAE}
    assert CONFIG.vocab_size in gathered
    assert {kind for kind, _ in exchanged} == {"all-gather", "all-reduce"}
    summed = [elements for kind, elements in exchanged if kind == "all-reduce"]
    assert summed == [CONFIG.hidden_size] * (1 + 2 * CONFIG.num_hidden_layers)


@pytest.mark.parametrize("count", SPLIT)
def test_kernels_that_xla_cannot_deal_out_are_left_out(found: dict[str, Any], count: int) -> None:
    ours = {kernels.PRODUCT, kernels.ATTENTION}
    assert ours & set(found["1"]["custom_calls"]) == (ours if kernels.available() else set())
    assert not ours & set(found[str(count)]["custom_calls"])
    assert found[str(count)]["dtypes"] == ["float32"]  # compact weights are for the kernels


@pytest.mark.parametrize("count", COUNTS)
def test_the_cache_stays_where_it_is_and_nothing_is_compiled_again(found: dict[str, Any], count: int) -> None:
    told = found[str(count)]
    assert told["donated"]
    assert told["stays"]
    assert told["recompiled"] == 0
    assert told["again"] == told["answer"]


@pytest.mark.parametrize("count", COUNTS)
def test_lookahead_changes_nothing(found: dict[str, Any], count: int) -> None:
    one, ahead = found["1"]["answer"], found[str(count)]["looked_up"]
    assert found[str(count)]["proposed"]
    assert ahead["ids"] == one["ids"]
    assert ahead["indices"] == one["indices"]
    for name in ("logprobs", "prompt_logprobs"):
        np.testing.assert_allclose(ahead[name], one[name], rtol=1e-4, atol=1e-4)
    for theirs, ours in zip(one["activations"], ahead["activations"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_the_9b_in_halves_moves_activations_only() -> None:
    """Its own widths and vocabulary, in bfloat16; compiled, not run."""
    told = on_eight_devices("split_9b", "2", "1")
    assert told["given"] == pytest.approx(told["whole"] / 2, rel=0.01)
    assert max(elements for _, elements in told["exchanged"]) <= GEMMA_2_9B.vocab_size < min(told["weight_parts"])
