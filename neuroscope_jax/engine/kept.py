"""The caches of earlier requests, for those that begin with the same tokens: the next turn of a chat.

Keys and values at a slot depend on the tokens up to it only, so whatever two sequences have in common at their
beginning is computed once. The engine thread alone uses this.
"""

import dataclasses
from collections.abc import Sequence

from neuroscope_jax import platforms
from neuroscope_jax.models.cache import KVCache

LEAST = 16  # tokens in common from which a kept cache is worth taking up
BUDGET = 2 << 30  # bytes of the kept caches and the one in use; a single cache may be larger


@dataclasses.dataclass(frozen=True, eq=False)  # == would compare arrays
class Kept:
    """What `cache` holds of `ids` is at their positions; what lies behind is of no meaning."""

    ids: tuple[int, ...]
    cache: KVCache
    forgotten: int  # see KVCache; all that was ever written counts


class KeptCaches:
    """Some caches, the latest last. A cache is here or in use, never both: steps donate it."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._kept: list[Kept] = []

    def keep(self, kept: Kept) -> None:
        """Keep a cache, unless it holds too little for anybody. The oldest make room for it."""
        if len(kept.ids) < LEAST:
            return
        self.make_room(kept.cache.nbytes)
        self._kept.append(kept)

    def take(self, ids: Sequence[int], length: int) -> Kept | None:
        """The cache that has most of `ids` at its beginning, to be used up, with those; None where they are few.

        At least one id is left to be fed in. Where the cache holds much else behind them, a copy of its first `length`
        positions is given away and it stays: a side question must not cost a chat its past.
        """
        found = max(self._kept, key=lambda kept: _usable(kept, ids), default=None)
        if found is None or not (count := _usable(found, ids)):
            return None
        self._kept.remove(found)
        beginning = dataclasses.replace(found, ids=found.ids[:count])
        wanted = min(length, found.cache.length)
        if 2 * count >= len(found.ids) or not self._fits(found.cache.nbytes + found.cache.nbytes_of(wanted)):
            return beginning
        self._kept.append(found)
        return dataclasses.replace(beginning, cache=found.cache.beginning(wanted))

    def make_room(self, nbytes: int) -> None:
        """Let go of the oldest until so many bytes more are within the budget, or nothing is left."""
        while self._kept and not self._fits(nbytes):
            self._kept.pop(0)

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()

    def _fits(self, nbytes: int) -> bool:
        return sum(kept.cache.nbytes for kept in self._kept) + nbytes <= self.budget


def budget() -> int:
    """BUDGET, but no more than half of what the devices in use have left, where they say so."""
    free = platforms.free_bytes()
    return BUDGET if free is None else min(BUDGET, free // 2)


def _usable(kept: Kept, ids: Sequence[int]) -> int:
    """How many of `ids` it saves a request; 0 where too few, or where what they need is gone from the cache."""
    count = min(common(kept.ids, ids), len(ids) - 1)
    return count if count >= LEAST and kept.cache.remembers(count, kept.forgotten) else 0


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids two sequences have in common at their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
