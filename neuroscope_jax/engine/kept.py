"""The caches of finished generations, for requests that begin with the same tokens: the next turn of a chat.

Keys and values at a slot depend on the tokens up to it only, so whatever two sequences have in common at their
beginning is computed once. The engine thread alone uses this.
"""

import dataclasses
from collections.abc import Sequence

from neuroscope_jax.engine.chunks import CHUNK_BUCKETS
from neuroscope_jax.models.cache import KVCache

LEAST = 16  # tokens in common from which a kept cache is worth taking up
BUDGET = 2 << 30  # bytes of the kept caches and the one in use; a single cache may be larger


@dataclasses.dataclass(frozen=True)
class Kept:
    """Slot s of `cache` holds ids[s]; what lies behind is of no meaning."""

    ids: tuple[int, ...]
    cache: KVCache


class KeptCaches:
    """Some caches, the latest last. A cache is here or in use, never both: steps donate it."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._kept: list[Kept] = []

    def keep(self, ids: Sequence[int], cache: KVCache) -> None:
        """Keep a cache whose first slots hold `ids`. The oldest make room for it."""
        self.make_room(cache.nbytes)
        self._kept.append(Kept(tuple(ids), cache))

    def take(self, ids: Sequence[int], slots: int) -> tuple[KVCache, int] | None:
        """The cache that has most of `ids` at its beginning, to be used up, and how many of them; None where few.

        At least one id is left to be fed in. Where the cache holds much else behind them, a copy of its first `slots`
        is given away and it stays: a side question must not cost a chat its past. `slots` is more than there are ids.
        """
        found = max(self._kept, key=lambda kept: common(kept.ids, ids), default=None)
        count = 0 if found is None else min(common(found.ids, ids), len(ids) - 1)
        if found is None or count < LEAST or not found.cache.remembers(count, _written(found)):
            return None
        self._kept.remove(found)
        wanted = min(slots, found.cache.length)
        if 2 * count >= len(found.ids) or not self._fits(found.cache.nbytes_of(found.cache.length + wanted)):
            return found.cache, count
        self._kept.append(found)
        return found.cache.beginning(wanted), count

    def make_room(self, nbytes: int) -> None:
        """Let go of the oldest until so many bytes more are within the budget, or nothing is left."""
        while self._kept and not self._fits(nbytes):
            self._kept.pop(0)

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()

    def _fits(self, nbytes: int) -> bool:
        return sum(kept.cache.nbytes for kept in self._kept) + nbytes <= self._budget


def _written(kept: Kept) -> int:
    """Up to where its slots may have been written: padding and proposals lie behind the ids."""
    return min(len(kept.ids) + CHUNK_BUCKETS[-1], kept.cache.length)


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids two sequences have in common at their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
