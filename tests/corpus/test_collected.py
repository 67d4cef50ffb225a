"""Parts of a pass joined on the host are the same as one pass."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from neuroscope_jax.corpus.collected import Collected, collect, joined
from neuroscope_jax.corpus.samples import Rows
from neuroscope_jax.corpus.state import Batch, CorpusState, with_batch

Made = list[tuple[np.ndarray, Rows]]


def run(batches: Made) -> Collected:
    step = jax.jit(with_batch, static_argnames="seed")
    state = CorpusState.empty(batches[0][0].shape[-1])
    for activations, rows in batches:
        state = step(state, activations, Batch(**dataclasses.asdict(rows)), seed=0)
    return collect(jax.tree.map(lambda x: x[None], state))


@pytest.fixture(scope="module")
def whole(made_up: Made) -> dict[str, Any]:
    return dataclasses.asdict(run(made_up))


@pytest.mark.parametrize("cuts", [[3], [1, 2, 5], [0, 7]], ids=["two", "four", "with empty ones"])
def test_joined_parts_are_the_whole(made_up: Made, whole: dict[str, Any], cuts: list[int]) -> None:
    edges = [0, *cuts, len(made_up)]
    empty = collect(jax.tree.map(lambda x: x[None], CorpusState.empty(made_up[0][0].shape[-1])))
    parts = [run(made_up[a:b]) if a < b else empty for a, b in zip(edges, edges[1:], strict=False)]
    found = dataclasses.asdict(joined(parts[::-1]))
    for name in ("mean", "m2"):
        np.testing.assert_allclose(found.pop(name), whole[name], rtol=1e-5, atol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, found, {k: v for k, v in whole.items() if k in found})


def test_stats_are_finite_and_a_dead_feature_has_none(made_up: Made) -> None:
    stats = run(made_up).stats()
    assert stats.count[0] == stats.mean_activation[0] == stats.activation_variance[0] == stats.max_activation[0] == 0
    assert stats.firing_rate[1] == 1.0
    firing = np.concatenate([a[rows.counted][:, 1] for a, rows in made_up])
    assert stats.max_activation[1] == firing.max()
    np.testing.assert_allclose(stats.activation_variance[1], firing.astype(np.float64).var(), rtol=1e-5)


def test_firings_that_are_all_alike_have_no_negative_variance() -> None:
    n = 2032
    for strength in np.random.default_rng(0).gamma(2.0, 6.0, 8).astype(np.float32):
        activations = np.full((16, 127, 1), strength)
        rows = Rows(
            np.zeros((16, 127), np.int32), np.ones((16, 127), bool), *(np.arange(16, dtype=np.int32) for _ in range(4))
        )
        stats = run([(activations, rows)] * 3).stats()
        assert stats.count[0] == 3 * n
        assert 0 <= stats.activation_variance[0] < 1e-9
        assert stats.mean_activation[0] == pytest.approx(float(strength))
