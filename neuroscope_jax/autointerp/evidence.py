"""What a finished pass knows of a feature: the examples its label is made from, and those the label is scored on.

examples.parquet   | 0 0 0 … 1 1 1 … 588 588 | 588 589 …      rows by rising feature, in row groups of 50,000
                     └─ of(0) ─┘└─ of(1) ─┘               one row group is held at a time: ask in feature order
"""

import collections
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from neuroscope_jax.autointerp.pool import Pool
from neuroscope_jax.corpus import parquet, schemas
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance, read_stats
from neuroscope_jax.models.chat import ChatTokenizer

NUMBERS = ("quantile", "activation", "document", "sample", "offset", "at", "cut_before", "cut_after")
TEXTS = ("before", "token", "after")
AGAIN = "make the files again with `neuroscope_jax calibrate run`"


@dataclass(frozen=True, eq=False)
class Firing:
    """A token on which the feature fires, in its context."""

    ids: Int[np.ndarray, " n"]  # at most 12 tokens before, the token, at most 12 after
    at: int  # of the token in `ids`
    document: int
    sample: int  # which stretch of the document
    offset: int  # of the token in its document
    activation: float
    quantile: float | None  # among the drawn firings, 0 weakest; None where it was not drawn
    cut_before: bool  # the sample begins within the context
    cut_after: bool

    @property
    def token_id(self) -> int:
        """The token it fires on."""
        return int(self.ids[self.at])


@dataclass(frozen=True, eq=False)
class Shown(Firing):
    """A firing that the labeller sees; as text, in which a character that several tokens spell stays whole."""

    before: str
    token: str
    after: str


@dataclass(frozen=True, eq=False)
class FeatureEvidence:
    """All examples of one feature; those of the three kinds come from different samples."""

    feature: int
    count: int  # tokens of the pass on which it fires
    top: list[Shown]  # strongest first
    random: list[Shown]  # of all strengths
    held_out: list[Firing]  # never shown to the labeller; weakest first

    @property
    def all(self) -> list[Firing]:
        """The examples of every kind."""
        return [*self.top, *self.random, *self.held_out]

    @functools.cached_property
    def usual_token(self) -> int | None:
        """The token most of the strongest examples fire on; of equally frequent ones that of the strongest."""
        found = collections.Counter(example.token_id for example in self.top).most_common(1)
        return found[0][0] if found else None


class Evidence:
    """The examples of a finished pass. `stats` and `provenance` are those of the statistics beside them.

    Raises UserError for files that are absent, damaged or of different runs.
    """

    def __init__(self, files: Files, tokenizer: ChatTokenizer) -> None:
        self.files, self.tokenizer = files, tokenizer
        self.stats, self.provenance = read_stats(files.stats)
        self._parquet = opened(files.examples, schemas.examples(), self.provenance)
        features = self._parquet.read(["feature"])["feature"].to_numpy()
        if np.any(np.diff(features) < 0) or np.any((features < 0) | (features >= self.stats.width)):
            raise UserError(f"{files.examples}: feature does not rise from 0 to {self.stats.width - 1}; {AGAIN}")
        self._bounds = np.searchsorted(features, np.arange(self.stats.width + 1))
        sizes = [self._parquet.metadata.row_group(i).num_rows for i in range(self._parquet.num_row_groups)]
        self._groups = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._group = functools.lru_cache(maxsize=1)(self._read)

    def features(self) -> list[int]:
        """The features that have examples."""
        found: list[int] = np.flatnonzero(np.diff(self._bounds)).tolist()
        return found

    @functools.cached_property
    def pool(self) -> Pool:
        """The windows of the same pass, read when first asked for."""
        path = self.files.windows
        return Pool.read(opened(path, schemas.windows(), self.provenance).read(), path, self.stats.width)

    def of(self, feature: int) -> FeatureEvidence:
        """The examples of a feature, none of one that never fired."""
        kinds: dict[str, list[Any]] = {"top": [], "random": [], "held_out": []}
        for kind, example in self._examples(int(self._bounds[feature]), int(self._bounds[feature + 1])):
            kinds[kind].append(example)
        return FeatureEvidence(feature, int(self.stats.count[feature]), **kinds)

    def _examples(self, start: int, stop: int) -> Iterator[tuple[str, Firing]]:
        """(kind, example) of these rows, which may lie in more than one row group."""
        while start < stop:
            group = int(np.searchsorted(self._groups, start, side="right")) - 1
            end = min(stop, int(self._groups[group + 1]))
            rows = self._group(group)
            yield from (rows.example(i - int(self._groups[group]), self.tokenizer) for i in range(start, end))
            start = end

    def _read(self, group: int) -> "_Rows":
        return _Rows(self._parquet.read_row_group(group, ["kind", "ids", *NUMBERS, *TEXTS]))


class _Rows:
    """A row group, its columns as lists."""

    def __init__(self, table: Any) -> None:
        ids = table["ids"].combine_chunks()
        self._ids, self._bounds = ids.values.to_numpy(), ids.offsets.to_pylist()
        self._kinds = table["kind"].to_pylist()
        self._numbers = list(zip(*(table[name].to_pylist() for name in NUMBERS), strict=True))
        self._texts = list(zip(*(table[name].to_pylist() for name in TEXTS), strict=True))

    def example(self, row: int, tokenizer: ChatTokenizer) -> tuple[str, Firing]:
        """(kind, example) of a row."""
        ids, kind = self._ids[self._bounds[row] : self._bounds[row + 1]], self._kinds[row]
        quantile, activation, document, sample, offset, at, cut_before, cut_after = self._numbers[row]
        place = (ids, at, document, sample, offset, activation, quantile, cut_before, cut_after)
        if kind == "held_out":
            return kind, Firing(*place)
        texts = self._texts[row]
        return kind, Shown(*place, *(whole_characters(ids, at, tokenizer) if "\ufffd" in "".join(texts) else texts))


def whole_characters(ids: Int[np.ndarray, " n"], at: int, tokenizer: ChatTokenizer) -> tuple[str, str, str]:
    """(before, token, after) as text; a token that is part of a character takes in all of it."""
    pieces = [
        tokenizer.token_text(i).encode() if i in tokenizer.control_ids else tokenizer.token_bytes(i)
        for i in ids.tolist()
    ]
    joined = b"".join(pieces)
    start = len(b"".join(pieces[:at]))
    stop = start + len(pieces[at])
    while 0 < start < len(joined) and _goes_on(joined[start]):
        start -= 1
    while stop < len(joined) and _goes_on(joined[stop]):
        stop += 1
    before, token, after = (b.decode("utf-8", "replace") for b in (joined[:start], joined[start:stop], joined[stop:]))
    return before, token, after


def _goes_on(byte: int) -> bool:
    """Whether this byte of UTF-8 goes on with a character that an earlier one began."""
    return byte & 0b1100_0000 == 0b1000_0000


def opened(path: Path, schema: Any, provenance: Provenance) -> Any:
    """A parquet file of a pass. Raises UserError where it is none of `schema`, or of another run than `provenance`."""
    file, found = parquet.opened(path, schema)
    if found.run != provenance.run:
        raise UserError(
            f"{path}: of run {found.run}, but the statistics beside it are of run {provenance.run}; {AGAIN}"
        )
    return file
