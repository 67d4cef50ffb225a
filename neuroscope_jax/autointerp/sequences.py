"""The sequences a label is scored on: some in which the feature fires, and some in which it is verified to be silent.

None comes from a sample that the labeller saw. Half of the silent ones are hard: they hold the token on which the
feature usually fires. A silent one is as long as an active one is, and none nearly says what an example of the feature
says, so that only what the words are about tells one kind from the other.
"""

import zlib
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Int

from neuroscope_jax.autointerp.evidence import FeatureEvidence, Firing
from neuroscope_jax.autointerp.near_duplicates import Alike, Said
from neuroscope_jax.autointerp.pool import Pool, numbered
from neuroscope_jax.corpus.hashing import hashed
from neuroscope_jax.models.chat import ChatTokenizer

ACTIVE, SILENT, HARD = 50, 20, 10
FEWEST = 10  # of each kind; a label is not scored on fewer
T = TypeVar("T")


@dataclass(frozen=True)
class Sequence:
    """A text, whether the feature fires in it and, where it does not, whether the usual token is there all the same."""

    text: str
    active: bool
    hard: bool = False


def shortage(sequences: list[Sequence]) -> str | None:
    """Why no label can be scored on these sequences, in words; None where one can."""
    active = sum(sequence.active for sequence in sequences)
    for count, kind in ((active, "active"), (len(sequences) - active, "silent")):
        if count < FEWEST:
            return f"only {count} {kind} sequences, at least {FEWEST} are needed"
    return None


class Drawer:
    """Draws the sequences of any feature; asked again for one of the same run, it draws the same."""

    def __init__(self, pool: Pool, tokenizer: ChatTokenizer, run: str) -> None:
        self._pool, self._tokenizer, self._seed = pool, tokenizer, zlib.crc32(run.encode())
        self._alike = Alike(tokenizer)

    def of(self, evidence: FeatureEvidence) -> list[Sequence]:
        """At most ACTIVE active and SILENT silent ones, shuffled."""
        shown = {(e.document, e.sample) for e in [*evidence.top, *evidence.random]}
        firings = _spread([e for e in evidence.held_out if (e.document, e.sample) not in shown], ACTIVE)
        active = [Sequence(self._tokenizer.spelled_out(e.ids.tolist()), active=True) for e in firings]
        lengths = [firings[i] for i in self._order(evidence.feature, 0, len(firings))]
        silent = [
            Sequence(self._tokenizer.spelled_out(ids), active=False, hard=evidence.usual_token in ids)
            for ids in self._silent(evidence, lengths)
        ]
        both = [*active, *silent]
        return [both[i] for i in self._order(evidence.feature, 1, len(both))]

    def _silent(self, evidence: FeatureEvidence, active: list[Firing]) -> list[list[int]]:
        """Ids of silent sequences, cut like SILENT of the active ones; first those that hold the usual token."""
        if evidence.usual_token is None or not active:
            return []
        order = self._order(evidence.feature, 2, len(self._pool.ids))
        usable = self._usable(evidence)
        hard = usable & self._pool.holding(evidence.usual_token)
        said = Said()
        for example in evidence.all:
            said.add(self._alike.runs(example.ids.tolist()))
        shapes = sorted((active[i % len(active)] for i in range(SILENT)), key=lambda e: -len(e.ids))
        chosen: dict[int, list[int]] = {}
        for among, count in ((hard, HARD), (usable, SILENT)):
            for window in order[among[order]].tolist():
                if len(chosen) == count:
                    break
                if window not in chosen:
                    self._try(window, evidence.usual_token, shapes, said, chosen)
        return list(chosen.values())

    def _try(self, window: int, token: int, shapes: list[Firing], said: Said, chosen: dict[int, list[int]]) -> None:
        """Take a window in the largest shape that is left and fits, unless what it says was said."""
        length = int(self._pool.length[window])
        shape = next((shape for shape in shapes if len(shape.ids) <= length), None)
        if shape is None:
            return
        ids = _cut(self._pool.ids[window, :length].tolist(), token, len(shape.ids), shape.at)
        runs = self._alike.runs(ids)
        if not said.nearly(runs):
            said.add(runs)
            shapes.remove(shape)
            chosen[window] = ids

    def _usable(self, evidence: FeatureEvidence) -> Bool[np.ndarray, " W"]:
        """Windows in which the feature is silent, from samples of which no example comes."""
        document, sample = (np.array([getattr(e, name) for e in evidence.all]) for name in ("document", "sample"))
        return self._pool.silent(evidence.feature) & ~np.isin(self._pool.sample, numbered(document, sample))

    def _order(self, feature: int, purpose: int, count: int) -> Int[np.ndarray, " count"]:
        """0 to count-1, shuffled."""
        words = (np.full(count, feature), np.full(count, purpose), np.arange(count))
        return np.argsort(hashed(self._seed, *(word.astype(np.uint32) for word in words)), kind="stable")


def _cut(ids: list[int], token: int, length: int, at: int) -> list[int]:
    """`length` of the ids; where they hold the token, it comes as near to place `at` as can be."""
    places = [i for i, found in enumerate(ids) if found == token] or [len(ids) // 2]
    starts = [min(max(place - at, 0), len(ids) - length) for place in places]
    start = min(zip(starts, places, strict=True), key=lambda s: abs(s[1] - s[0] - at))[0]
    return ids[start : start + length]


def _spread(items: list[T], count: int) -> list[T]:
    """At most `count` of them, evenly spaced."""
    return [items[i] for i in np.linspace(0, len(items) - 1, min(len(items), count)).round().astype(int)]
