"""Surprise and suppression against NumPy in float64, where calibration is thick, thin and absent."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.features.filters import EPSILON, MAX_SURPRISE, FeatureFilter
from tests.features.measured import WIDTH, activations, measured


@pytest.fixture
def stats() -> FeatureStats:
    return measured(activations())


def made(stats, mode="surprise", threshold=0.5):
    return FeatureFilter.of(stats, len(stats.count), mode, threshold)


def surprise(stats, found):
    return np.asarray(made(stats).surprise(jnp.asarray(found, jnp.float32)))


def by_definition(stats, found):
    """Feature by feature: the variance of n firings shrunk as if 10 more had the median variation of the others."""
    n, mean, variance = stats.count, stats.mean_activation, stats.activation_variance
    usual = np.median([np.sqrt(variance[i]) / mean[i] for i in range(len(n)) if n[i] >= 100])
    z = []
    for i in range(len(n)):
        shrunk = (n[i] * variance[i] + 10 * (usual * mean[i]) ** 2) / (n[i] + 10)
        z.append(np.clip((found[i] - mean[i]) / np.sqrt(shrunk + EPSILON), -8, 8) if n[i] else 0)
    return np.array(z)


def test_surprise_by_definition(stats):
    assert {0, 1, 2} <= set(stats.count.tolist())
    for found in activations(seed=1)[:20].astype(np.float64):
        np.testing.assert_allclose(surprise(stats, found), by_definition(stats, found), rtol=1e-4, atol=1e-5)


def test_many_firings_give_the_formula_of_the_specification(stats):
    many = dataclasses.replace(stats, count=stats.count * 10**8, tokens=stats.tokens * 10**8)
    found = stats.mean_activation * 1.3
    z = (found - stats.mean_activation) / np.sqrt(stats.activation_variance + EPSILON)
    fired = (stats.count > 0) & (z < MAX_SURPRISE)
    assert fired.sum() > WIDTH // 2
    np.testing.assert_allclose(surprise(many, found)[fired], z[fired], rtol=1e-4)


def test_calibration_surprise_scoring():
    """Far above its own mean beats stronger but usual."""
    stats = FeatureStats(
        tokens=1000,
        count=np.array([1000, 1000]),
        mean_activation=np.array([50.0, 2.0]),
        activation_variance=np.array([100.0, 1.0]),
        max_activation=np.array([90.0, 6.0]),
        histogram=np.zeros((2, 32), np.int64),
    )
    usual, unusual = surprise(stats, [52.0, 7.0])
    np.testing.assert_allclose([usual, unusual], [0.2, 5.0], rtol=0.05)


def test_a_feature_that_never_fired_is_as_surprising_as_one_at_its_mean(stats):
    found = np.where(stats.count > 0, stats.mean_activation, 1e6)
    found[10] *= 1.5
    found[11] *= 0.5
    z = surprise(stats, found)
    assert z[0] == 0
    assert z[11] < z[0] < z[10]


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e6])
def test_a_feature_that_fired_once_is_scored_by_the_usual_variation(stats, strength):
    """Its own variance is 0: the formula alone would give thousands for the slightest difference."""
    stats.mean_activation[1], stats.activation_variance[1] = strength, 0
    found = stats.mean_activation * 1.5
    z = surprise(stats, found)
    assert np.all(np.isfinite(z))
    typical = np.median(z[stats.count >= 100])
    assert 0.3 * typical < z[1] < 3 * typical


def test_surprise_is_finite_and_capped(stats):
    found = np.tile([1e-30, 1e30], WIDTH // 2)
    z = surprise(stats, found)
    assert np.all(np.isfinite(z))
    assert np.abs(z).max() == MAX_SURPRISE


def test_without_any_feature_of_support(stats):
    """Ten tokens: no feature has fired often enough to say how much activations usually vary."""
    few = measured(activations()[:10])
    z = surprise(few, few.mean_activation * 2)
    # One firing of strength m and ten of the prior's, whose deviation is m: m / sqrt(10/11 m²).
    (once,) = np.flatnonzero(few.count == 1)[:1]
    assert z[once] == pytest.approx(np.sqrt(11 / 10), rel=1e-3)


def test_the_threshold_itself_passes():
    stats = measured(np.float32([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]))
    for threshold, hidden in ((0.5, [1, 0, 0, 0]), (0.25, [1, 1, 0, 0]), (0.0, [1, 1, 1, 0]), (1.0, [0, 0, 0, 0])):
        for mode in ("frequency", "combined"):
            assert made(stats, mode, threshold).suppressed.tolist() == [bool(h) for h in hidden]
        for mode in ("none", "surprise"):
            assert not made(stats, mode, threshold).suppressed.any()


def test_billions_of_firings_fit(stats):
    many = dataclasses.replace(stats, count=stats.count * 10**9, tokens=stats.tokens * 10**9)
    assert made(many).firings.min() >= 0
