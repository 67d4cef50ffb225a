"""Gemma 2 against transformers' Gemma2ForCausalLM (eager attention, float32, CPU)."""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers import Gemma2Config as HFConfig
from transformers import Gemma2ForCausalLM, GenerationConfig

from neuroscope_jax.models.cache import KVCache
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.registry import build_model, read_config
from neuroscope_jax.models.weights import Params, load_weights

torch.set_num_threads(1)  # the matrices are tiny; more threads only wait for each other
TOLERANCE = 1e-4
BASE = {
    "vocab_size": 120,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "query_pre_attn_scalar": 16,
    "sliding_window": 4096,
    "max_position_embeddings": 128,
}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "every query head its own key": {"num_key_value_heads": 4},
    "one key for all": {"num_key_value_heads": 1, "num_hidden_layers": 2},
    "scaled by another figure than the head": {"query_pre_attn_scalar": 144, "head_dim": 8},
    "no caps": {"attn_logit_softcapping": None, "final_logit_softcapping": None},
    "low caps": {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 2.0},
    "window shorter than the text": {"sliding_window": 5, "num_hidden_layers": 4},
    "window of one": {"sliding_window": 1, "num_hidden_layers": 1},
    "another rope base": {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "rms_norm_eps": 1e-3},
}
IDS = jnp.array(np.random.default_rng(7).integers(3, BASE["vocab_size"], (2, 19)))
TORCH_IDS = torch.tensor(np.asarray(IDS), dtype=torch.int64)


def make_hf(changes: dict[str, Any]) -> Gemma2ForCausalLM:
    """A random model whose activations are large enough for the caps and norms to matter."""
    torch.manual_seed(0)
    config = HFConfig(
        **{**BASE, **changes}, attn_implementation="eager", pad_token_id=0, eos_token_id=1, bos_token_id=2
    )
    model = Gemma2ForCausalLM(config).eval()
    for name, weight in model.named_parameters():
        weight.data.normal_(0, 0.4 if name.endswith("norm.weight") else 0.25)
    return model


def ours(folder: Path, dtype: jnp.dtype = jnp.float32) -> tuple[Gemma2, Params]:
    model = build_model(read_config(folder), dtype)
    return model, load_weights(folder, model, dtype)


apply = jax.jit(Gemma2.apply, static_argnums=0, static_argnames=("method", "mutable"))


@functools.partial(jax.jit, static_argnums=0)
def forward(
    model: Gemma2, params: Params, ids: jax.Array, at: jax.Array, cache: KVCache
) -> tuple[jax.Array, KVCache | None]:
    """Logits of all T tokens and the cache with them written."""
    x, cache = model.apply({"params": params}, ids, at, cache)
    return model.apply({"params": params}, x, method="logits"), cache


def positions(length: int, start: int = 0) -> jax.Array:
    return jnp.broadcast_to(jnp.arange(start, start + length), (2, length))


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Gemma2, Params]:
    """transformers' model and ours, from one saved checkpoint."""
    folder = tmp_path_factory.mktemp("checkpoint")
    hf = make_hf(request.param)
    hf.save_pretrained(folder)
    return hf, *ours(folder)


def test_residual_of_every_layer_and_logits(pair: tuple[Any, Gemma2, Params]) -> None:
    hf, model, params = pair
    residuals, logits = hf_forward(hf)
    (x, _), state = apply(model, {"params": params}, IDS, positions(19), mutable="intermediates")
    for layer, expected in enumerate(residuals):
        (found,) = state["intermediates"][f"layers_{layer}"]["resid_post"]
        np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0, err_msg=f"layer {layer}")
    assert len(residuals) == model.config.num_hidden_layers
    assert np.abs(logits).max() > 1
    np.testing.assert_allclose(model.apply({"params": params}, x, method="logits"), logits, atol=TOLERANCE, rtol=0)


def hf_forward(hf: Gemma2ForCausalLM) -> tuple[list[np.ndarray], np.ndarray]:
    """Residual after every block and logits; hidden_states[-1] is already normed, so the last block is hooked."""
    last: list[torch.Tensor] = []
    hook = hf.model.layers[-1].register_forward_hook(
        lambda _module, _inputs, out: last.append(out[0] if isinstance(out, tuple) else out)
    )
    with torch.no_grad():
        out = hf(TORCH_IDS, output_hidden_states=True)
    hook.remove()
    return [hidden.numpy() for hidden in [*out.hidden_states[1:-1], *last]], out.logits.numpy()


def test_decoding_step_by_step_through_the_cache_equals_prefill(pair: tuple[Any, Gemma2, Params]) -> None:
    hf, model, params = pair
    _, expected = hf_forward(hf)
    cache = model.empty_cache(batch=2, length=24)
    for start, end in [(0, 8), (8, 16), *((i, i + 1) for i in range(16, 19))]:
        logits, cache = forward(model, params, IDS[:, start:end], positions(end - start, start), cache)
        np.testing.assert_allclose(logits, expected[:, start:end], atol=TOLERANCE, rtol=0, err_msg=f"from {start}")


def test_a_cache_that_grows_keeps_its_entries(tmp_path: Path) -> None:
    hf = make_hf({})
    hf.save_pretrained(tmp_path)
    model, params = ours(tmp_path)
    expected = hf_forward(hf)[1][:, 8:9]
    _, cache = forward(model, params, IDS[:, :8], positions(8), model.empty_cache(batch=2, length=8))
    logits, _ = forward(model, params, IDS[:, 8:9], positions(1, 8), cache.grown(16))
    np.testing.assert_allclose(logits, expected, atol=TOLERANCE, rtol=0)


def test_greedy_text_equals_generate(tmp_path: Path) -> None:
    hf = make_hf(CASES["window shorter than the text"])
    hf.model.embed_tokens.weight.data.mul_(0.1)  # else the tied embedding makes it repeat what it reads
    hf.save_pretrained(tmp_path)
    model, params = ours(tmp_path)
    prompt, unending = TORCH_IDS[:, :6], GenerationConfig(max_new_tokens=30, pad_token_id=0)
    with torch.no_grad():
        expected = hf.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=unending)
    logits, cache = forward(model, params, IDS[:, :6], positions(6), model.empty_cache(batch=2, length=36))
    found = [IDS[:, :6]]
    for position in range(6, 36):
        found.append(jnp.argmax(logits[:, -1:], axis=-1))
        logits, cache = forward(model, params, found[-1], positions(1, position), cache)
    found = np.concatenate(found, axis=1)
    assert found.tolist() == expected.tolist()
    assert len(np.unique(found[:, 6:])) > 10


def test_sharded_checkpoint_loads_the_same(tmp_path: Path) -> None:
    hf = make_hf({})
    hf.save_pretrained(tmp_path / "one")
    hf.save_pretrained(tmp_path / "many", max_shard_size="40KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    one, many = ours(tmp_path / "one")[1], ours(tmp_path / "many")[1]
    jax.tree.map(np.testing.assert_array_equal, one, many)


def test_bfloat16_checkpoint_keeps_every_bit(tmp_path: Path) -> None:
    hf = make_hf({}).to(torch.bfloat16)
    hf.save_pretrained(tmp_path)
    _, params = ours(tmp_path, jnp.bfloat16)
    expected = hf.state_dict()
    for layer in range(3):
        found = np.asarray(params[f"layers_{layer}"]["mlp"]["up_proj"]["weight"]).view(np.int16)
        bits = expected[f"model.layers.{layer}.mlp.up_proj.weight"].view(torch.int16).numpy()
        np.testing.assert_array_equal(found, bits)


def test_bfloat16_arithmetic_stays_close(tmp_path: Path) -> None:
    """Both round at every step, not at the same places: the residual agrees to a few times bfloat16's 2^-8."""
    hf = make_hf({}).to(torch.bfloat16)
    hf.save_pretrained(tmp_path)
    model, params = ours(tmp_path, jnp.bfloat16)
    with torch.no_grad():
        expected = hf(TORCH_IDS, output_hidden_states=True).hidden_states[1].float().numpy()
    _, state = apply(model, {"params": params}, IDS, positions(19), mutable="intermediates")
    found = np.asarray(state["intermediates"]["layers_0"]["resid_post"][0], np.float32)
    assert np.linalg.norm(found - expected) < 0.02 * np.linalg.norm(expected)
