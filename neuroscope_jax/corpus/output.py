"""The files of a finished pass, all naming one run: statistics in JSON; examples, the samples they lie in and the pool
of windows in parquet.

All are written aside, then renamed, the statistics last: an earlier result stays until the new one is whole.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from neuroscope_jax.corpus import parquet, schemas
from neuroscope_jax.corpus.collected import Collected
from neuroscope_jax.corpus.examples import Example, choose
from neuroscope_jax.corpus.passages import OUTSIDE, Passages
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.corpus.windows import BEFORE, WIDTH
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance, save_stats
from neuroscope_jax.files import set_aside
from neuroscope_jax.models.chat import ChatTokenizer

PASSAGES_AT_ONCE = 4096
Rows = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Files:
    """Where the results of a pair lie, side by side."""

    stats: Path

    @property
    def examples(self) -> Path:
        """Examples, one a row."""
        return self._beside("examples.parquet")

    @property
    def windows(self) -> Path:
        """Windows of the pool, one a row."""
        return self._beside("windows.parquet")

    @property
    def passages(self) -> Path:
        """Samples that examples lie in, one a row."""
        return self._beside("passages.parquet")

    @property
    def shading(self) -> Path:
        """Activations around examples; not a pass but `shading.shading` writes it."""
        return self._beside("shading.parquet")

    def shard(self, host: int, hosts: int) -> Path:
        """The part of one host, until all are merged."""
        return self._beside(f"shard_{host}_of_{hosts}.npz")

    def all(self) -> list[Path]:
        """The files of a finished pass."""
        return [self.stats, self.examples, self.windows, self.passages]

    def _beside(self, ending: str) -> Path:
        """demo_stats.json gives demo_examples.parquet, demo.json demo.examples.parquet: no two share a file."""
        name = self.stats.name.removesuffix(".json")
        pair = name.removesuffix("_stats")
        return self.stats.with_name(f"{pair}{'.' if pair == name else '_'}{ending}")


def write(
    files: Files, collected: Collected, passages: Passages, tokenizer: ChatTokenizer, provenance: Provenance
) -> int:
    """Write all four files; returns how many near duplicates were left out.

    Raises UserError where it cannot, and where no token counted.
    """
    if not collected.tokens:
        what = "only control tokens and headers of chat turns, which are not counted"
        raise UserError(f"{provenance.corpus}: no text to calibrate with; its samples hold {what}. Give other texts")
    choice = _Choice(collected, passages, tokenizer)
    with set_aside(files.examples, files.windows, files.passages, files.stats) as asides:
        for aside, rows, schema in (
            (asides[0], choice.rows(), schemas.examples()),
            (asides[1], _pool(collected, passages), schemas.windows()),
        ):
            parquet.write(aside, parquet.in_tables(rows, schema), schema, provenance)
        parquet.write(asides[2], _cited(passages, choice.cited), schemas.passages(), provenance)
        save_stats(asides[3], collected.stats(), provenance)
    return choice.duplicates


class _Choice:
    """The examples, gone through once; what else is to be known of them is known after that."""

    def __init__(self, collected: Collected, passages: Passages, tokenizer: ChatTokenizer) -> None:
        self._source = collected, passages, tokenizer
        self.duplicates = 0
        self.cited = np.zeros(len(passages.document), bool)  # the passages that an example lies in

    def rows(self) -> Iterator[dict[str, Any]]:
        collected, passages, tokenizer = self._source
        with progress("examples", len(collected.count), "features") as bar:
            for chosen, dropped in choose(collected, passages, tokenizer):
                self.duplicates += dropped
                bar.update()
                document, offset = (np.array([getattr(e, n) for e in chosen], np.int64) for n in ("document", "offset"))
                self.cited[passages.find(document, offset)] = True
                yield from _rows(chosen, passages.contexts(document, offset), tokenizer)


def _rows(examples: list[Example], windows: Int[np.ndarray, "n 25"], tokenizer: ChatTokenizer) -> Rows:
    return [
        {**vars(example), **_context(window.tolist(), example.kind != "held_out", tokenizer)}
        | {"sample": example.offset // STRIDE}
        for example, window in zip(examples, windows, strict=True)
    ]


def _context(window: list[int], as_text: bool, tokenizer: ChatTokenizer) -> dict[str, Any]:
    """The tokens around one, as ids and, where asked for, as text; control tokens are spelled out."""
    sides = window[:BEFORE], window[BEFORE : BEFORE + 1], window[BEFORE + 1 :]
    before, token, after = ([i for i in side if i != OUTSIDE] for side in sides)
    texts = [tokenizer.spelled_out(side) if as_text else None for side in (before, token, after)]
    cut = {"cut_before": len(before) < BEFORE, "cut_after": len(after) < len(window) - BEFORE - 1}
    return {"ids": before + token + after, "at": len(before), **cut} | dict(
        zip(("before", "token", "after"), texts, strict=True)
    )


def _pool(collected: Collected, passages: Passages) -> Iterator[dict[str, Any]]:
    for i in np.flatnonzero(passages.slot >= 0)[np.argsort(passages.slot[passages.slot >= 0])]:
        first = int(passages.start[i]) - 1
        ids = [t for t in passages.ids[i, first : first + WIDTH].tolist() if t != OUTSIDE]
        yield {
            "document": int(passages.document[i]),
            "offset": int(passages.chunk[i]) * STRIDE + first,
            "ids": ids,
            "fired": collected.windows[passages.slot[i]].astype("<u4").tobytes(),
        }


def _cited(passages: Passages, cited: Bool[np.ndarray, " n"]) -> Iterator[Any]:
    import pyarrow as pa

    numbers = np.flatnonzero(cited)
    for at in range(0, len(numbers), PASSAGES_AT_ONCE):
        some = numbers[at : at + PASSAGES_AT_ONCE]
        inside = passages.ids[some] != OUTSIDE
        ends = np.cumsum([0, *inside.sum(1)], dtype=np.int32)
        ids = pa.ListArray.from_arrays(ends, passages.ids[some][inside])
        yield pa.table([passages.document[some], passages.chunk[some], ids], schema=schemas.passages())
