"""Sorting networks against Python's sort."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.corpus.ranked import LAST, NOWHERE, Ranked, first_of, ordered, resized, strongest_first

Rows = list[list[tuple[float, ...]]]


def some(places: int, seed: int) -> Ranked:
    """Few different keys and documents, so that ties of all kinds occur; some places are empty."""
    rng = np.random.default_rng(seed)
    shape = (40, places)
    empty = rng.random(shape) < 0.2
    return Ranked(
        key=jnp.asarray(np.where(empty, LAST, rng.integers(0, 4, shape)).astype(np.uint32)),
        document=jnp.asarray(np.where(empty, NOWHERE, rng.integers(0, 3, shape)).astype(np.int32)),
        offset=jnp.asarray(
            np.where(empty, NOWHERE, rng.permuted(np.tile(np.arange(places), (40, 1)) + 1000 * seed, axis=1))
        ),
        activation=jnp.asarray(np.where(empty, 0, rng.random(shape)).astype(np.float32)),
    )


def entries(ranked: Ranked) -> Rows:
    columns = (ranked.key, ranked.document, ranked.offset, ranked.activation)
    return [list(zip(*(np.asarray(c)[e].tolist() for c in columns), strict=True)) for e in range(len(ranked.key))]


@pytest.mark.parametrize("places", [1, 2, 4, 16, 64])
def test_ordered(places: int) -> None:
    found = some(places, 0)
    assert entries(jax.jit(ordered)(found)) == [sorted(row) for row in entries(found)]


@pytest.mark.parametrize("places", [1, 2, 8, 128])
def test_first_of_two_sorted_lists(places: int) -> None:
    a, b = ordered(some(places, 1)), ordered(some(places, 2))
    expected = [sorted(x + y)[:places] for x, y in zip(entries(a), entries(b), strict=True)]
    assert entries(jax.jit(first_of)(a, b)) == expected


def test_resized_adds_empty_places_behind() -> None:
    row = resized(ordered(some(4, 3)), 8)
    assert (np.asarray(row.key)[:, 4:] == LAST).all()
    assert entries(resized(row, 4)) == entries(ordered(some(4, 3)))


def test_the_key_of_strongest_first_falls_with_the_activation_and_is_last_where_there_is_none() -> None:
    activations = jnp.asarray([0.0, 1e-30, 0.5, 0.50000006, 3.0, 1e30], jnp.float32)
    keys = np.asarray(strongest_first(activations)).astype(np.int64)
    assert keys[0] == LAST
    assert (np.diff(keys) < 0).all()
