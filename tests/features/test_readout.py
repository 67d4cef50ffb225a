"""Filter and top-K against NumPy; the thresholds are traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.features.readout import Tap, read_out
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from tests.features.measured import measured

D_IN, D_SAE, K = 16, 128, 10


@pytest.fixture
def sae() -> SparseAutoencoder:
    rows = jax.random.normal(jax.random.key(0), (D_SAE, D_IN))
    return SparseAutoencoder(rows, jnp.zeros(D_SAE), jnp.full(D_SAE, 2.0), jnp.float32(1))


def calibrated(sae, seed=0) -> FeatureStats:
    """Over residuals of many sizes, so that firing rates differ; some features never fired or once."""
    rng = np.random.default_rng(seed)
    residuals = rng.normal(0, 0.7, (60, D_IN)) + rng.normal(0, 0.7, D_IN)
    return measured(np.asarray(sae.encode(jnp.asarray(residuals, jnp.float32))))


@pytest.fixture
def stats(sae) -> FeatureStats:
    return calibrated(sae)


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
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 1.0])
def test_calibration_frequency_filter(sae, stats, mode, threshold):
    """Above the threshold left out and counted, the next-highest in its place; below it, as without a filter."""
    encoded = np.asarray(sae.encode(residual()))
    often = stats.firing_rate > threshold
    kept = np.where(often, 0, encoded)
    found = read_out(tap(sae, stats, mode, threshold), residual())
    shown = np.asarray(found.activations) > 0
    assert np.array_equal(np.asarray(found.indices)[shown], strongest(kept, kept))
    assert int(found.filtered_count) == ((encoded > 0) & often).sum()
    if 0 < threshold < 1:
        assert 0 < int(found.filtered_count) < (encoded > 0).sum()


def test_surprise_mode_ranks_by_surprise(sae, stats):
    encoded = np.asarray(sae.encode(residual()))
    used = tap(sae, stats, "surprise")
    z = np.asarray(used.filter.surprise(jnp.asarray(encoded)))
    found = read_out(used, residual())
    expected = strongest(z, encoded)
    assert not np.array_equal(expected, strongest(encoded, encoded))
    assert np.array_equal(found.indices, expected)
    np.testing.assert_allclose(found.surprise, z[expected], rtol=1e-5)
    np.testing.assert_allclose(found.activations, encoded[expected], rtol=1e-5)
    assert np.array_equal(found.firings, stats.count[expected])
    assert int(found.filtered_count) == 0


def test_none_reports_surprise_and_filters_nothing(sae, stats):
    used = tap(sae, stats, "none", 0.0)
    found = read_out(used, residual())
    encoded = np.asarray(sae.encode(residual()))
    expected = strongest(encoded, encoded)
    assert np.array_equal(found.indices, expected)
    z = np.asarray(used.filter.surprise(jnp.asarray(encoded)))
    np.testing.assert_allclose(found.surprise, z[expected], rtol=1e-5)
    assert int(found.filtered_count) == 0


def test_a_feature_that_never_fired_does_not_lead(sae, stats):
    """However strong it is: the strongest active feature is made one that the calibration never saw."""
    encoded = np.asarray(sae.encode(residual()))
    first = int(np.argmax(encoded))
    for column in (stats.count, stats.mean_activation, stats.activation_variance, stats.max_activation):
        column[first] = 0
    found = read_out(tap(sae, stats, "surprise"), residual())
    z = np.asarray(found.surprise)
    assert (z > 0).any()
    assert int(found.indices[0]) != first


def test_another_mode_threshold_or_calibration_compiles_nothing(sae, stats):
    jitted = jax.jit(read_out)
    settings = [("frequency", 0.5), ("frequency", 0.1), ("surprise", 0.5), ("none", 0.5), ("combined", 0.2)]
    for calibration in (stats, calibrated(sae, seed=1)):
        for mode, threshold in settings:
            jitted(tap(sae, calibration, mode, threshold), residual())
    assert jitted._cache_size() == 1
