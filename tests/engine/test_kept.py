"""Which kept cache a request gets, and what makes room."""

from collections.abc import Sequence

import jax.numpy as jnp
import pytest

from neuroscope_jax import platforms
from neuroscope_jax.engine import kept
from neuroscope_jax.engine.kept import Kept, KeptCaches, common
from neuroscope_jax.models.cache import KVCache

BYTES = 2 * 8 * 2 * 4  # of `cache`


def cache(mark: float = 0.0) -> KVCache:
    """One layer of eight slots."""
    keys, values = (jnp.full((1, 8, 1, 2), mark, jnp.float32) for _ in range(2))
    return KVCache((keys,), (values,), windows=(None,), length=8)


def keep(caches: KeptCaches, ids: Sequence[int], cache: KVCache) -> None:
    caches.keep(Kept(tuple(ids), cache, forgotten=0))


def take(caches: KeptCaches, ids: Sequence[int], length: int) -> tuple[KVCache, int] | None:
    """The cache, and how many ids it holds."""
    taken = caches.take(ids, length)
    if taken is None:
        return None
    assert list(taken.ids) == list(ids[: len(taken.ids)])
    return taken.cache, len(taken.ids)


def mark_of(cache: KVCache) -> float:
    return float(cache.keys[0][0, 0, 0, 0])


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch) -> KeptCaches:
    monkeypatch.setattr(kept, "LEAST", 3)
    return KeptCaches(budget=3 * BYTES)


@pytest.mark.parametrize(
    ("a", "b", "expected"), [((), (), 0), ((1, 2), (1, 2, 3), 2), ((1, 2, 3), (1, 5, 3), 1), ((1,), (2,), 0)]
)
def test_common(a: tuple[int, ...], b: tuple[int, ...], expected: int) -> None:
    assert common(a, b) == expected


def test_the_longest_beginning_is_taken_and_used_up(caches: KeptCaches) -> None:
    keep(caches, [1, 2, 3, 4], cache(1))
    keep(caches, [1, 2, 3, 4, 5, 6], cache(2))
    keep(caches, [9, 2, 3, 4, 5, 6], cache(3))
    taken, count = take(caches, [1, 2, 3, 4, 5, 6, 7, 8], 8)
    assert (mark_of(taken), count) == (2, 6)
    taken, count = take(caches, [1, 2, 3, 4, 5, 6, 7, 8], 8)
    assert (mark_of(taken), count) == (1, 4)
    assert take(caches, [1, 2, 3, 4, 5, 6, 7, 8], 8) is None


def test_the_last_id_is_always_fed_in(caches: KeptCaches) -> None:
    """The choice of token 0 comes from it."""
    keep(caches, [1, 2, 3, 4, 5], cache())
    assert take(caches, [1, 2, 3, 4, 5], 8)[1] == 4


def test_where_the_longest_has_lost_what_is_needed_the_next_is_taken(caches: KeptCaches) -> None:
    """A local layer that sees 3 positions back: 5 … 7 are needed at 8, and 6 is the first still there.

    The two are of the same ids: which of them is let go must not be asked of their arrays.
    """
    local = KVCache(cache(1).keys, cache(1).values, windows=(4,), length=8)
    caches.keep(Kept(tuple(range(8)), local, forgotten=6))
    keep(caches, range(8), cache(2))
    taken, count = take(caches, range(9), 9)
    assert (mark_of(taken), count) == (2, 8)
    assert take(caches, range(9), 9) is None


def test_what_nobody_could_take_is_not_kept(caches: KeptCaches) -> None:
    keep(caches, [1, 2, 3, 4], cache(1))
    for _ in range(5):
        keep(caches, [7, 8], cache(2))
    assert mark_of(take(caches, [1, 2, 3, 4, 5], 8)[0]) == 1


def test_little_in_common_is_not_worth_it(caches: KeptCaches) -> None:
    keep(caches, [1, 2, 7, 7], cache())
    assert take(caches, [1, 2, 3, 4], 8) is None
    assert take(caches, [1, 2, 7], 8) is None, "only two could be reused"
    assert take(caches, [1, 2, 7, 7], 8) is not None


def test_a_side_question_leaves_the_chat_its_cache(caches: KeptCaches) -> None:
    chat = [1, 2, 3, 4, 5, 6, 7, 8]
    original = cache(5)
    keep(caches, chat, original)
    copy, count = take(caches, [1, 2, 3, 30, 31], 6)
    assert (mark_of(copy), count) == (5, 3)
    assert copy.length == 6
    assert copy.keys[0].unsafe_buffer_pointer() != original.keys[0].unsafe_buffer_pointer()
    taken, count = take(caches, [*chat, 9], 8)
    assert (taken is original, count) == (True, 8)


def test_no_copy_beyond_the_budget(caches: KeptCaches) -> None:
    small = KeptCaches(budget=BYTES)
    keep(small, [1, 2, 3, 4, 5, 6, 7, 8], cache())
    assert take(small, [1, 2, 3, 30], 8)[1] == 3
    assert take(small, [1, 2, 3, 4, 5, 6, 7, 8], 8) is None


def test_the_oldest_make_room(caches: KeptCaches) -> None:
    for first in range(3):
        keep(caches, [first, 2, 3, 4], cache(first))
    caches.make_room(BYTES)
    assert take(caches, [0, 2, 3, 4], 8) is None
    assert mark_of(take(caches, [1, 2, 3, 4], 8)[0]) == 1


def test_one_cache_may_exceed_the_budget() -> None:
    tight = KeptCaches(budget=1)
    keep(tight, range(20), cache(1))
    keep(tight, range(20), cache(2))
    assert mark_of(take(tight, range(20), 8)[0]) == 2
    assert take(tight, range(20), 8) is None


class Device:
    """What its allocator says, as GPUs and TPUs do."""

    def __init__(self, limit: int, used: int) -> None:
        self._stats = {"bytes_limit": limit, "bytes_in_use": used}

    def memory_stats(self) -> dict[str, int]:
        return self._stats


@pytest.mark.parametrize(
    ("free", "expected"), [([3 << 30], 3 << 29), ([1 << 30, 1 << 29], 1 << 29), ([90 << 30], kept.BUDGET), ([0], 0)]
)
def test_a_device_that_is_nearly_full_keeps_less(
    free: list[int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platforms, "_in_use", lambda: [Device((7 << 30) + each, 7 << 30) for each in free])
    assert kept.budget() == expected


def test_a_cpu_does_not_say() -> None:
    assert platforms.free_bytes() is None
    assert kept.budget() == kept.BUDGET
