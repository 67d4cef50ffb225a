"""Masks and attention against loops over float64 numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.attention import View, attend, causal_mask


@pytest.mark.parametrize("window", [None, 1, 2, 4, 100])
def test_mask_by_its_rule(window: int | None) -> None:
    queries, keys = np.array([[3, 4, 5], [3, 4, 5]]), np.broadcast_to(np.arange(9), (2, 9))
    found = causal_mask(jnp.array(queries), jnp.array(keys), window)
    for b, t, s in np.ndindex(2, 3, 9):
        i, j = queries[b, t], keys[b, s]
        assert bool(found[b, t, s]) == (j <= i and (window is None or i - j < window))


def oracle(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: float, cap: float | None
) -> np.ndarray:
    out = np.zeros(q.shape)
    for b, t, n in np.ndindex(q.shape[:3]):
        head = n // (q.shape[2] // k.shape[2])
        scores = k[b, :, head] @ q[b, t, n] * scale
        scores = scores if cap is None else cap * np.tanh(scores / cap)
        weights = np.where(mask[b, t], np.exp(scores - scores.max()), 0)
        out[b, t, n] = weights / weights.sum() @ v[b, :, head]
    return out


@pytest.mark.parametrize(
    ("batch", "length", "slots"),
    [(2, 1, 7), (2, 5, 7), (1, 70, 93)],
    ids=["one query", "several", "many of one sequence"],
)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("cap", [None, 3.0])
def test_attention_in_every_form(batch: int, length: int, slots: int, kv_heads: int, cap: float | None) -> None:
    rng = np.random.default_rng(0)
    q = rng.normal(0, 2, (batch, length, 4, 8))
    k, v = rng.normal(0, 2, (2, batch, slots, kv_heads, 8))
    mask = rng.random((batch, length, slots)) < 0.6
    mask[..., 0] = True
    found = attend(*(jnp.array(x, jnp.float32) for x in (q, k, v)), View(jnp.array(mask), None, None), 0.4, cap)
    np.testing.assert_allclose(found, oracle(q, k, v, mask, 0.4, cap), atol=2e-5)
