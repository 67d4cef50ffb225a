"""Every firing is equally likely to be drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from neuroscope_jax.corpus.firings import Firings
from neuroscope_jax.corpus.hashing import hashed
from neuroscope_jax.corpus.ranked import Ranked
from neuroscope_jax.corpus.reservoir import PLACES, with_drawn

TOKENS, FEATURES = 4000, 60


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    """Which of TOKENS firings each feature keeps; all features fire at the same tokens, 500 documents of 8."""
    step = jax.jit(with_drawn, static_argnums=1)
    reservoir = Ranked.empty(FEATURES, PLACES)
    for tokens in np.arange(TOKENS).reshape(-1, 200):
        feature, token = (x.reshape(-1).astype(np.int32) for x in np.meshgrid(np.arange(FEATURES), tokens))
        firings = Firings(*map(jnp.asarray, (feature, 1.0 + token.astype(np.float32), token // 8, token % 8)))
        reservoir = step(reservoir, 0, firings)
    found = np.asarray(reservoir.document * 8 + reservoir.offset)
    np.testing.assert_array_equal(found, np.asarray(reservoir.activation) - 1)
    return found


def test_each_feature_keeps_as_many_as_it_can_and_no_token_twice(drawn: np.ndarray) -> None:
    assert all(len(set(row)) == PLACES for row in drawn.tolist())


@pytest.mark.parametrize("parts", [lambda t: t * 20 // TOKENS, lambda t: t % 8, lambda t: t // 8 % 25])
def test_draws_are_uniform_over_time_offset_and_document(drawn: np.ndarray, parts) -> None:  # noqa: ANN001
    counts = np.bincount(parts(drawn).reshape(-1))
    assert stats.chisquare(counts).pvalue > 0.01


def test_features_draw_independently(drawn: np.ndarray) -> None:
    shared = [len(set(a) & set(b)) for a, b in zip(drawn[:-1].tolist(), drawn[1:].tolist(), strict=True)]
    assert abs(np.mean(shared) - PLACES**2 / TOKENS) < 1.0  # 4.1 expected; its standard error here is 0.25


def test_the_hash_is_the_same_in_numpy_and_in_a_jit_and_spreads_evenly() -> None:
    words = [np.arange(20_000, dtype=np.uint32) * step for step in (1, 2, 3)]
    found = hashed(7, *words)
    np.testing.assert_array_equal(found, jax.jit(lambda *w: hashed(7, *w))(*map(jnp.asarray, words)))
    assert stats.kstest(found / 2**32, "uniform").pvalue > 0.01
    bits = (found[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert abs(bits.mean(0) - 0.5).max() < 0.02
