"""Which examples of a feature are kept: 20 strongest and 5 of all strengths for its label, others to score the label.

An example is left out where the model had read the same as at one that was chosen before: equal tokens but for case and
digits in the window up to the token on which the feature fires, whatever follows it. Random examples and those for the
score come from the drawn firings and from samples that are not used yet, so that no label is scored on what its author
saw.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int, UInt

from neuroscope_jax.corpus.collected import Collected, Entries
from neuroscope_jax.corpus.passages import OUTSIDE, Passages
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.corpus.windows import BEFORE
from neuroscope_jax.models.chat import ChatTokenizer

TOP, HELD_OUT = 20, 60
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the rank among the drawn firings, weakest at 0
FEATURES_AT_ONCE = 512  # whose windows are looked at together
DIGIT = re.compile(r"\d")
FACTOR = 0x9E3779B97F4A7C15  # odd, of a polynomial hash modulo 2⁶⁴


@dataclasses.dataclass(frozen=True)
class Example:
    """One firing of a feature, and what it is kept for."""

    feature: int
    kind: str  # top, random or held_out
    rank: int  # 0 is the first of its kind
    quantile: float | None  # rank among all drawn firings, 0 the weakest, 1 the strongest; None for top
    document: int
    offset: int
    activation: float


def choose(collected: Collected, passages: Passages, tokenizer: ChatTokenizer) -> Iterator[tuple[list[Example], int]]:
    """For each feature in turn its examples, and how many near duplicates were dropped from them."""
    alike = _alike(passages, tokenizer)
    for at in range(0, len(collected.count), FEATURES_AT_ONCE):
        some = slice(at, at + FEATURES_AT_ONCE)
        top, drawn = _cut(collected.top, some), _cut(collected.drawn, some)
        marks = _marks(top, passages, alike), _marks(drawn, passages, alike)
        for i in range(len(top.key)):
            yield _of_feature(at + i, _candidates(top, marks[0], i), _candidates(drawn, marks[1], i))


@dataclasses.dataclass(frozen=True, eq=False)
class _Candidate:
    document: int
    offset: int
    activation: float
    mark: int  # equal for near duplicates

    @property
    def sample(self) -> tuple[int, int]:
        return self.document, self.offset // STRIDE


class _Chooser:
    """Takes candidates in turn, unless their sample was used or what the window reads up to its token was before."""

    def __init__(self) -> None:
        self.samples: set[tuple[int, int]] = set()
        self.marks: set[int] = set()
        self.duplicates = 0

    def take(self, candidate: _Candidate) -> bool:
        if candidate.sample in self.samples:
            return False
        if candidate.mark in self.marks:
            self.duplicates += 1
            return False
        self.samples.add(candidate.sample)
        self.marks.add(candidate.mark)
        return True


def _of_feature(feature: int, top: list[_Candidate], drawn: list[_Candidate]) -> tuple[list[Example], int]:
    chooser = _Chooser()
    strongest = list(itertools.islice((c for c in top if chooser.take(c)), TOP))
    rank = {id(c): i for i, c in enumerate(sorted(drawn, key=lambda c: c.activation))}
    quantile = {name: i / max(len(drawn) - 1, 1) for name, i in rank.items()}
    others = sorted((c for c in drawn if chooser.take(c)), key=lambda c: rank[id(c)])
    random = [_nearest(others, quantile, target) for target in QUANTILES[: len(others)]]
    held_out = [others[i] for i in np.linspace(0, len(others) - 1, min(len(others), HELD_OUT)).round().astype(int)]
    kinds = {"top": strongest, "random": random, "held_out": held_out}
    examples = [
        Example(feature, kind, i, quantile.get(id(c)), c.document, c.offset, c.activation)
        for kind, candidates in kinds.items()
        for i, c in enumerate(candidates)
    ]
    return examples, chooser.duplicates


def _nearest(others: list[_Candidate], quantile: dict[int, float], target: float) -> _Candidate:
    """Takes the candidate whose quantile is nearest out of `others`."""
    return others.pop(min(range(len(others)), key=lambda i: abs(quantile[id(others[i])] - target)))


def _candidates(entries: Entries, marks: UInt[np.ndarray, "F K"], feature: int) -> list[_Candidate]:
    kept = entries.activation[feature] > 0
    columns = entries.document, entries.offset, entries.activation, marks
    return [_Candidate(*values) for values in zip(*(column[feature][kept].tolist() for column in columns), strict=True)]


def _cut(entries: Entries, features: slice) -> Entries:
    return Entries(**{f.name: getattr(entries, f.name)[features] for f in dataclasses.fields(Entries)})


def _marks(entries: Entries, passages: Passages, alike: Int[np.ndarray, " V"]) -> UInt[np.ndarray, "F K"]:
    """A number of each entry's window up to its token, the same where these say the same."""
    kept = entries.activation > 0
    windows = passages.contexts(np.where(kept, entries.document, -1), np.where(kept, entries.offset, 0))
    windows = windows[..., : BEFORE + 1]
    same = np.where(windows == OUTSIDE, OUTSIDE, alike[windows]).astype(np.uint64)
    powers = np.cumprod(np.full(same.shape[-1], FACTOR, np.uint64))
    mixed: UInt[np.ndarray, "F K"] = (same * powers).sum(-1, dtype=np.uint64)
    return mixed


def _alike(passages: Passages, tokenizer: ChatTokenizer) -> Int[np.ndarray, " V"]:
    """For each id the smallest id that reads the same but for case and digits."""
    ids = np.unique(passages.ids[passages.ids != OUTSIDE])
    table = np.zeros(int(ids.max(initial=0)) + 1, np.int64)
    first: dict[str, int] = {}
    for i in ids.tolist():
        table[i] = first.setdefault(DIGIT.sub("0", tokenizer.token_text(i).lower()), i)
    return table
