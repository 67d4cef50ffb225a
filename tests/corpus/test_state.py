"""Every statistic of a pass against a plain NumPy pass over the same activations."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from neuroscope_jax.corpus import firings as firings_module
from neuroscope_jax.corpus.firings import Firings
from neuroscope_jax.corpus.hashing import hashed
from neuroscope_jax.corpus.moments import Moments, with_firings
from neuroscope_jax.corpus.samples import Rows
from neuroscope_jax.corpus.state import Batch, CorpusState, with_batch
from neuroscope_jax.corpus.windows import WIDTH
from neuroscope_jax.features.calibration import HISTOGRAM_EDGES

SEED = 11
Made = list[tuple[np.ndarray, Rows]]


@pytest.fixture(scope="module", params=[4, firings_module.LOT], ids=["many rounds", "one round"])
def state(made_up: Made, request: pytest.FixtureRequest) -> CorpusState:
    """The pass over all batches; with a small lot the firings of a token need many rounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firings_module, "LOT", request.param)
        return run(made_up)


def run(batches: Made) -> CorpusState:
    step = jax.jit(with_batch, static_argnames="seed", donate_argnames="state")
    found = CorpusState.empty(batches[0][0].shape[-1])
    for activations, rows in batches:
        found = step(found, activations, Batch(**dataclasses.asdict(rows)), seed=SEED)
    return found


@pytest.fixture(scope="module")
def firings(made_up: Made) -> list[np.ndarray]:
    """For each feature its firings as rows of (document, offset, activation), in float64."""
    found: list[list[tuple[float, float, float]]] = [[] for _ in range(made_up[0][0].shape[-1])]
    for activations, rows in made_up:
        for b, t, e in np.argwhere((activations > 0) & rows.counted[:, :, None]):
            found[e].append((rows.document[b], rows.offset[b] + t - 1, activations[b, t, e]))
    return [np.array(f, np.float64).reshape(-1, 3) for f in found]


def test_tokens_and_counts_are_exact(state: CorpusState, made_up: Made, firings: list[np.ndarray]) -> None:
    assert int(state.tokens) == sum(int(rows.counted.sum()) for _, rows in made_up)
    assert state.moments.count.tolist() == [len(f) for f in firings]
    assert state.moments.count[0] == 0
    assert state.moments.count[1] == state.tokens


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="CUSTOM CALLS ARE NOT LOOKED AT: those of XLA:CPU are meant")
def test_the_strongest_of_a_token_are_found_without_sorting_all() -> None:
    wide = np.zeros((1, 4, 4096), np.float32)
    rows = Rows(np.zeros((1, 4), np.int32), np.ones((1, 4), bool), *np.zeros((4, 1), np.int32))
    program = jax.jit(with_batch, static_argnames="seed").lower(
        CorpusState.empty(4096), wide, Batch(**dataclasses.asdict(rows)), seed=SEED
    )
    text = program.compile().as_text()
    assert "TopK" in text
    assert not re.search(r"\[4,4096\]\S* sort\(", text)


def test_mean_and_variance(state: CorpusState, firings: list[np.ndarray]) -> None:
    fired = [e for e, f in enumerate(firings) if len(f)]
    m = jax.tree.map(lambda x: np.asarray(x, np.float64), state.moments)
    np.testing.assert_allclose((m.mean + m.mean_low)[fired], [firings[e][:, 2].mean() for e in fired], rtol=1e-6)
    expected = [((firings[e][:, 2] - firings[e][:, 2].mean()) ** 2).sum() for e in fired]
    np.testing.assert_allclose((m.m2 + m.m2_low)[fired], expected, rtol=1e-5, atol=1e-9)


def test_histogram(state: CorpusState, firings: list[np.ndarray]) -> None:
    edges = np.concatenate([[-np.inf], HISTOGRAM_EDGES.astype(np.float64), [np.inf]])
    for found, f in zip(np.asarray(state.histogram), firings, strict=True):
        assert found.tolist() == np.histogram(f[:, 2], edges)[0].tolist()


def test_top_is_exact_with_one_example_a_sample_and_ties_to_the_earlier_token(
    state: CorpusState, firings: list[np.ndarray]
) -> None:
    for e, f in enumerate(firings):
        best: dict[tuple[float, float], tuple[float, float, float]] = {}
        for document, offset, activation in f.tolist():
            sample = document, offset // 23
            best[sample] = min(best.get(sample, (np.inf,) * 3), (-activation, document, offset))
        expected = sorted(best.values())[: state.top.places]
        kept = np.asarray(state.top.activation[e]) > 0
        found = (-state.top.activation[e][kept], state.top.document[e][kept], state.top.offset[e][kept])
        assert list(zip(*(x.tolist() for x in found), strict=True)) == expected


def test_the_drawn_firings_are_those_with_the_smallest_hashes(state: CorpusState, firings: list[np.ndarray]) -> None:
    drawn = jax.tree.map(np.asarray, state.drawn)
    for e, f in enumerate(firings):
        words = np.full(len(f), e, np.uint32), f[:, 0].astype(np.uint32), f[:, 1].astype(np.uint32)
        order = np.lexsort((words[2], words[1], hashed(SEED, *words)))[: drawn.places]
        kept = drawn.activation[e] > 0
        assert kept.sum() == len(order)
        found = np.stack([drawn.document[e][kept], drawn.offset[e][kept], drawn.activation[e][kept]], 1)
        np.testing.assert_array_equal(found, f[order])


def test_windows_hold_whether_a_feature_fires_in_them(state: CorpusState, made_up: Made) -> None:
    bits = (np.asarray(state.windows)[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    fired = bits.reshape(len(bits), -1).astype(bool)
    expected = np.zeros_like(fired)
    for activations, rows in made_up:
        for b, slot in enumerate(rows.slot):
            if slot >= 0:
                inside = slice(rows.start[b], rows.start[b] + WIDTH)
                active = (activations[b] > 0) & rows.counted[b][:, None]
                expected[slot, : activations.shape[-1]] = active[inside].any(0)
    np.testing.assert_array_equal(fired, expected)


def test_the_order_of_batches_changes_no_count_and_no_example(state: CorpusState, made_up: Made) -> None:
    other = run(made_up[::-1])
    for name in ("tokens", "histogram", "top", "drawn", "windows"):
        jax.tree.map(np.testing.assert_array_equal, getattr(state, name), getattr(other, name))
    np.testing.assert_array_equal(state.moments.count, other.moments.count)


def test_moments_keep_their_digits_over_many_batches() -> None:
    rng = np.random.default_rng(1)
    values = (1000 + rng.random((4000, 16, 1)) * rng.choice([0.5, 3], (4000, 1, 1))).astype(np.float32)
    rows = np.zeros(16, np.int32), np.arange(16, dtype=np.int32)

    def step(moments: Moments, batch: jax.Array) -> tuple[Moments, None]:
        return with_firings(moments, Firings(rows[0], batch[:, 0], *rows)), None

    m, _ = jax.jit(lambda v: jax.lax.scan(step, Moments.empty(1), v))(values)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(float(m.mean[0]) + float(m.mean_low[0]), exact.mean(), rtol=1e-9)
    np.testing.assert_allclose((float(m.m2[0]) + float(m.m2_low[0])) / m.count[0], exact.var(), rtol=1e-6)
