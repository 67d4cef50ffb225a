"""The caches of finished generations, for requests that begin with the same tokens: the next turn of a chat.

Keys and values at a slot depend on the tokens up to it only, so whatever two sequences have in common at their
beginning is computed once. The engine thread alone uses this.
"""

import dataclasses
from collections.abc import Sequence

from neuroscope_jax.models.cache import KVCache

LEAST = 16  # tokens in common from which a kept cache is worth taking up
BUDGET = 2 << 30  # bytes of the kept caches and the one in use; a single cache may be larger


@dataclasses.dataclass(frozen=True)
class Kept:
    """What `cache` holds of `ids` is at their positions; what lies behind is of no meaning."""

    ids: tuple[int, ...]
    cache: KVCache
    forgotten: int  # see KVCache; all that was ever written counts


class KeptCaches:
    """Some caches, the latest last. A cache is here or in use, never both: steps donate it."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._kept: list[Kept] = []

    def keep(self, kept: Kept) -> None:
        """Keep a cache. The oldest make room for it."""
        self.make_room(kept.cache.nbytes)
        self._kept.append(kept)

    def take(self, ids: Sequence[int], length: int) -> Kept | None:
        """The cache that has most of `ids` at its beginning, to be used up, with those; None where they are few.

        At least one id is left to be fed in. Where the cache holds much else behind them, a copy of its first `length`
        positions is given away and it stays: a side question must not cost a chat its past. `length` is more than
        there are ids.
        """
        found = max(self._kept, key=lambda kept: common(kept.ids, ids), default=None)
        count = 0 if found is None else min(common(found.ids, ids), len(ids) - 1)
        if found is None or count < LEAST or not found.cache.remembers(count, found.forgotten):
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
        return sum(kept.cache.nbytes for kept in self._kept) + nbytes <= self._budget


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids two sequences have in common at their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
