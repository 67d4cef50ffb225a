"""What the report counts, against NumPy on figures made up here."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.quantization.compare import ROWS, compare_features, compare_step
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from tests.models.conftest import TINY
from tests.random_params import random_params

TOP_K, LAYER, FEATURES = 4, 0, 40


def test_overlap_by_hand() -> None:
    plain = jnp.array([[5.0, 4, 3, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5]])
    other = jnp.array([[5.0, 0, 3, 4, 0], [2, 1, 0, 0, 0], [0, 0, 0, 0, 0], [5, 4, 3, 2, 1]])
    overlap, either, error = compare_features(plain, other, 3)
    np.testing.assert_allclose(overlap, [2 / 3, 1 / 2, 0, 1 / 3])
    np.testing.assert_array_equal(either, [1, 1, 0, 1])
    np.testing.assert_array_equal(error, [8, 2, 0, 12])


def made_up() -> tuple[Gemma2, dict[str, Any], dict[str, Any], SparseAutoencoder]:
    """A model, other weights near its own, and an SAE of which a good part is active."""
    model = Gemma2(dataclasses.replace(TINY, vocab_size=50))
    plain = random_params(model)
    other = jax.tree.map(lambda leaf: leaf + 0.02 * jax.random.normal(jax.random.key(1), leaf.shape), plain)
    rows = jax.random.normal(jax.random.key(2), (FEATURES, TINY.hidden_size))
    return model, plain, other, SparseAutoencoder(rows, jnp.zeros(FEATURES), jnp.full(FEATURES, 0.5), jnp.float32(1))


def oracle(plain: np.ndarray, other: np.ndarray, top_k: int) -> list[float]:
    """Shares of the longer of two top lists, by sets."""
    shares = []
    for a, b in zip(plain, other, strict=True):
        tops = [{i for i in np.argsort(-x)[:top_k] if x[i] > 0} for x in (a, b)]
        most = max(map(len, tops))
        shares.append(len(tops[0] & tops[1]) / most if most else np.nan)
    return shares


def test_sums_equal_numpys() -> None:
    model, plain, other, sae = made_up()
    ids = jax.random.randint(jax.random.key(3), (1, 2 * ROWS), 0, 50)
    counts = np.arange(2 * ROWS) % 5 != 0
    found = compare_step(model, plain, other, sae, ids, jnp.array(counts), LAYER, TOP_K)

    @jax.jit
    def forward(params: Any) -> tuple[jax.Array, jax.Array]:
        given, positions = {"params": params}, jnp.arange(2 * ROWS)[None]
        _, sown = model.apply(given, ids, positions, mutable=["intermediates"])
        residual = sown["intermediates"][f"layers_{LAYER}"]["resid_post"][0][0]
        return residual, model.apply(given, ids, positions, method="scores")[0]

    def run(params: Any) -> list[np.ndarray]:
        return [np.asarray(found, np.float64)[counts] for found in forward(params)]

    (residual, scores), (residual_q, scores_q) = run(plain), run(other)
    logp, logq = (s - np.log(np.exp(s).sum(-1, keepdims=True)) for s in (scores, scores_q))
    features, features_q = (
        np.where((f := r @ np.asarray(sae.encoder_rows).T) > 0.5, f, 0) for r in (residual, residual_q)
    )
    shares = oracle(features, features_q, TOP_K)
    expected = {
        "tokens": counts.sum(),
        "agreeing": (logp.argmax(-1) == logq.argmax(-1)).sum(),
        "kl": (np.exp(logp) * (logp - logq)).sum(),
        "overlap": np.nansum(shares),
        "with_features": np.isfinite(shares).sum(),
        "activation_error": np.abs(features - features_q).sum(),
        "activation": features.sum(),
        "plain_active": (features > 0).sum(),
        "active": (features_q > 0).sum(),
        "residual_error": (np.linalg.norm(residual - residual_q, axis=-1) / np.linalg.norm(residual, axis=-1)).sum(),
    }
    assert 0 < expected["agreeing"] < expected["tokens"]
    assert {name: float(value) for name, value in vars(found).items()} == pytest.approx(expected, rel=2e-3)
