"""Where entries go, and what is still there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models import cache as module
from neuroscope_jax.models.cache import KVCache, held, slots_of, write

WINDOW, MARGIN, SIZE = 8, 50, 64


@pytest.fixture(autouse=True)
def _small_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MARGIN", MARGIN)


def test_cache_entries_go_where_they_belong_and_growing_keeps_them() -> None:
    cache = KVCache.empty(windows=(None, None), batch=1, length=4, kv_heads=1, head_dim=2, dtype=jnp.float32)
    new = jnp.arange(4.0).reshape(1, 2, 1, 2) + 1
    keys = write(cache.keys[1], new, jnp.array(1), None)
    assert keys[0, :, 0].tolist() == [[0, 0], [1, 2], [3, 4], [0, 0]]
    grown = cache.replace(keys=(cache.keys[0], keys)).grown(6)
    assert grown.length == 6
    assert grown.keys[1][0, :, 0].tolist() == [[0, 0], [1, 2], [3, 4], [0, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(("tokens", "window"), [(1, None), (3, None), (3, 5)])
def test_slots_of_bfloat16_are_written_without_passing_through_float32(tokens: int, window: int | None) -> None:
    """XLA:CPU would pass all of the cache through it to write one slot."""
    slots = slots_of(window, 4096)
    old, new = (jnp.zeros((1, size, 2, 8), jnp.bfloat16) for size in (slots, tokens))
    program = jax.jit(write, static_argnums=3, donate_argnums=0).lower(old, new, jnp.int32(1), window).compile()
    assert f"f32[1,{slots}," not in program.as_text()


def empty(length: int) -> KVCache:
    return KVCache.empty((WINDOW, None), batch=1, length=length, kv_heads=1, head_dim=1, dtype=jnp.float32)


def filled(length: int, written: int, step: int) -> KVCache:
    """Every position below `written` holds its own number, written so many at a time."""
    cache = empty(length)
    for start in range(0, written, step):
        new = jnp.arange(start, min(start + step, written), dtype=jnp.float32)[None, :, None, None]
        pairs = zip(cache.keys, cache.windows, strict=True)
        cache = cache.replace(keys=tuple(write(keys, new, jnp.int32(start), window) for keys, window in pairs))
    return cache


def test_slots() -> None:
    assert [slots_of(None, length) for length in (5, 5000)] == [5, 5000]
    assert [slots_of(WINDOW, length) for length in (5, 64, 65, 5000)] == [5, 64, 64, 64]
    assert [keys.shape[1] for keys in empty(200).keys] == [SIZE, 200]
    assert empty(200).nbytes == 2 * 4 * (SIZE + 200)
    assert empty(100).nbytes_of(30) == 2 * 4 * (30 + 30)


@pytest.mark.parametrize("step", [1, 7, 16])
@pytest.mark.parametrize("written", [1, 63, 64, 65, 130, 200])
def test_slots_hold_what_is_said_of_them(written: int, step: int) -> None:
    local, everything = filled(200, written, step).keys
    positions = held(jnp.int32(written - 1), SIZE)
    assert sorted(p for p in positions.tolist() if p >= 0) == list(range(max(0, written - SIZE), written))
    np.testing.assert_array_equal(local[0, :, 0, 0], jnp.maximum(positions, 0))
    np.testing.assert_array_equal(everything[0, :written, 0, 0], jnp.arange(written))


@pytest.mark.parametrize(
    ("count", "written", "expected"),
    [(0, 64, True), (0, 65, False), (40, 90, True), (7, 64, True), (50, 108, False), (50, 107, True), (190, 200, True)],
)
def test_what_is_remembered(count: int, written: int, expected: bool) -> None:
    """Held against the slots themselves: all that a query at `count` sees is there."""
    cache = filled(200, written, 1)
    assert cache.remembers(count, cache.forgotten(written)) is expected
    local = cache.keys[0][0, :, 0, 0]
    seen = range(max(0, count - WINDOW + 1), count)
    there = all(local[position % SIZE] == position for position in seen)
    assert there or not expected
    assert cache.forgotten(64) == 0


def test_growing_and_a_copy_of_the_beginning_keep_entries() -> None:
    for cache in (filled(40, 40, 8).grown(300), filled(300, 40, 8).beginning(40)):
        local, everything = cache.keys
        assert local[0, :40, 0, 0].tolist() == everything[0, :40, 0, 0].tolist() == list(range(40))
        assert (local.shape[1], everything.shape[1]) == (slots_of(WINDOW, cache.length), cache.length)
