"""Filter and top-K against NumPy; the thresholds are traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.features.filters import EPSILON, FeatureFilter
from neuroscope_jax.features.readout import Tap, read_out
from neuroscope_jax.sae.autoencoder import SparseAutoencoder

D_IN, D_SAE, K = 16, 128, 10


@pytest.fixture
def sae() -> SparseAutoencoder:
    rows = jax.random.normal(jax.random.key(0), (D_SAE, D_IN))
    return SparseAutoencoder(rows, jnp.zeros(D_SAE), jnp.full(D_SAE, 2.0), jnp.float32(1))


@pytest.fixture
def stats() -> FeatureStats:
    rng = np.random.default_rng(0)
    return FeatureStats(*(rng.uniform(0, 1, D_SAE).astype(np.float32) * scale for scale in (1, 6, 4)))


def tap(sae, stats, mode, threshold=0.5):
    return Tap(sae, FeatureFilter.of(stats, D_SAE, mode, threshold), layer=0, top_k=K)


def residual(seed=1):
    return jax.random.normal(jax.random.key(seed), (D_IN,))


def strongest(rank, activations):
    """Indices of the K highest ranked active features."""
    order = np.argsort(-np.where(activations > 0, rank, -np.inf), kind="stable")
    return order[: min(K, int((activations > 0).sum()))]


def test_sae_topk_extraction(sae):
    found = read_out(tap(sae, None, "frequency"), residual())
    activations = np.asarray(found.activations)
    assert activations.shape == (K,)
    assert np.all(np.diff(activations) <= 0)
    assert np.all(activations > 0)
    encoded = np.asarray(sae.encode(residual()))
    assert np.array_equal(found.indices, strongest(encoded, encoded))
    assert int(found.filtered_count) == 0


def test_fewer_active_than_k_leaves_zeros(sae):
    sparse = sae.replace(threshold=jnp.full(D_SAE, jnp.sort(sae.encode(residual()))[-4]))
    found = read_out(tap(sparse, None, "none"), residual())
    assert (np.asarray(found.activations) > 0).tolist() == [True] * 3 + [False] * 7


@pytest.mark.parametrize("mode", ["frequency", "combined"])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9, 1.0])
def test_frequency_takes_the_next_highest(sae, stats, mode, threshold):
    encoded = np.asarray(sae.encode(residual()))
    kept = np.where(stats.firing_rate > threshold, 0, encoded)
    found = read_out(tap(sae, stats, mode, threshold), residual())
    shown = np.asarray(found.activations) > 0
    assert np.array_equal(np.asarray(found.indices)[shown], strongest(kept, kept))
    assert int(found.filtered_count) == ((encoded > 0) & (stats.firing_rate > threshold)).sum()


def test_surprise_ranks_by_z_score(sae, stats):
    encoded = np.asarray(sae.encode(residual())).astype(np.float64)
    z = (encoded - stats.mean_activation) / np.sqrt(stats.activation_variance + EPSILON)
    found = read_out(tap(sae, stats, "surprise"), residual())
    expected = strongest(z, encoded)
    assert np.array_equal(found.indices, expected)
    np.testing.assert_allclose(found.surprise, z[expected], rtol=1e-4)
    np.testing.assert_allclose(found.activations, encoded[expected], rtol=1e-5)
    assert int(found.filtered_count) == 0


def test_none_with_statistics_reports_surprise_and_filters_nothing(sae, stats):
    found = read_out(tap(sae, stats, "none", 0.0), residual())
    encoded = np.asarray(sae.encode(residual()))
    assert np.array_equal(found.indices, strongest(encoded, encoded))
    assert int(found.filtered_count) == 0


def test_another_mode_or_threshold_compiles_nothing(sae, stats):
    jitted = jax.jit(read_out)
    for mode, threshold in (("frequency", 0.5), ("frequency", 0.1), ("surprise", 0.5), ("none", 0.5)):
        jitted(tap(sae, stats, mode, threshold), residual())
    assert jitted._cache_size() == 1
