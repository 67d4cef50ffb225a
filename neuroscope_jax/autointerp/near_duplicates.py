"""Telling sequences that say nearly the same: they share most runs of four tokens, case and digits set aside."""

import collections
import functools
from collections.abc import Sequence

from neuroscope_jax.corpus.examples import DIGIT
from neuroscope_jax.models.chat import ChatTokenizer

RUN = 4  # tokens
SAME = 0.5  # of the runs in the shorter of two sequences, found in both


class Alike:
    """How tokens read but for case and digits."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._read = functools.cache(lambda i: DIGIT.sub("0", tokenizer.token_text(i).lower()))

    def runs(self, ids: Sequence[int]) -> frozenset[tuple[str, ...]]:
        """All runs of RUN tokens, or the one shorter run of a shorter sequence."""
        tokens = [self._read(i) for i in ids]
        return frozenset(zip(*(tokens[n:] for n in range(min(RUN, len(tokens)))), strict=False))


class Said:
    """Sequences that were there before, by their runs."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._where: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)

    def add(self, runs: frozenset[tuple[str, ...]]) -> None:
        """One more sequence."""
        for run in runs:
            self._where[run].append(len(self._sizes))
        self._sizes.append(len(runs))

    def nearly(self, runs: frozenset[tuple[str, ...]]) -> bool:
        """Whether a sequence nearly says what one of them does."""
        shared = collections.Counter(n for run in runs for n in self._where.get(run, ()))
        return any(count >= SAME * min(len(runs), self._sizes[n]) for n, count in shared.items())
