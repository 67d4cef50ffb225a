"""The whole decoder by properties that need no oracle. (Against transformers: tests/parity/test_gemma2.py.)"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models import gemma2
from neuroscope_jax.models.gemma2 import Gemma2
from tests.models.conftest import TINY

apply = jax.jit(Gemma2.apply, static_argnums=0, static_argnames=("method", "mutable"))
Tiny = tuple[Gemma2, dict[str, Any]]
LENGTH = 20  # more than two windows of the tiny model
IDS = jnp.array(np.random.default_rng(5).integers(0, 64, (1, LENGTH)))
POSITIONS = jnp.arange(LENGTH)[None]


def test_decoding_through_the_cache_equals_reading_all_at_once(tiny: Tiny) -> None:
    model, params = tiny
    expected = apply(model, {"params": params}, IDS, POSITIONS, method="scores")
    cache = model.empty_cache(batch=1, length=32)
    for start, end in [(0, 7), *((i, i + 1) for i in range(7, LENGTH))]:
        x, cache = apply(model, {"params": params}, IDS[:, start:end], POSITIONS[:, start:end], cache)
        found = apply(model, {"params": params}, x, method="logits")
        np.testing.assert_allclose(found, expected[:, start:end], atol=1e-4)


def test_padding_after_the_text_changes_nothing(tiny: Tiny) -> None:
    model, params = tiny
    expected, _ = apply(model, {"params": params}, IDS[:, :9], POSITIONS[:, :9])
    found, _ = apply(model, {"params": params}, IDS.at[:, 9:].set(0), POSITIONS)
    np.testing.assert_allclose(found[:, :9], expected, atol=1e-5)


def test_a_local_layer_forgets_what_lies_beyond_its_window(tiny: Tiny) -> None:
    model, params = tiny
    other = IDS.at[0, 0].set((IDS[0, 0] + 1) % 64)

    def residuals(ids: jax.Array) -> list[jax.Array]:
        _, state = apply(model, {"params": params}, ids, POSITIONS, mutable="intermediates")
        return [state["intermediates"][f"layers_{i}"]["resid_post"][0][0] for i in (0, 1)]

    (local, both), (local_other, both_other) = residuals(IDS), residuals(other)
    window = model.config.sliding_window
    assert not np.allclose(local[window - 1], local_other[window - 1], atol=1e-5)
    np.testing.assert_array_equal(local[window:], local_other[window:])
    assert not np.allclose(both[-1], both_other[-1], atol=1e-5)


def test_every_block_sows_its_residual_and_the_last_is_what_the_call_returns(tiny: Tiny) -> None:
    model, params = tiny
    (x, _), state = apply(model, {"params": params}, IDS, POSITIONS, mutable="intermediates")
    assert set(state["intermediates"]) == {"layers_0", "layers_1"}
    np.testing.assert_array_equal(state["intermediates"]["layers_1"]["resid_post"][0], x)


def test_layers_that_are_alike_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataclasses.replace(TINY, num_hidden_layers=6, rope_theta=5_000.0)  # no other test's, which are kept
    model, traced, attend = Gemma2(config), [], gemma2.attend
    monkeypatch.setattr(gemma2, "attend", lambda *args: traced.append(args[3].window) or attend(*args))
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), IDS, POSITIONS, method="scores"))
    assert traced == [8, None]
    jax.eval_shape(lambda params: model.apply(params, IDS, POSITIONS), params)
    assert traced == 2 * [8, None]
