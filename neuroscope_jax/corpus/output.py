"""The files of a finished pass: statistics in JSON, examples and the pool of windows in parquet, all naming one run.

All are written aside, then renamed, the statistics last: an earlier result stays until the new one is whole.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

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

ROWS_AT_ONCE = 50_000
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

    def shard(self, host: int, hosts: int) -> Path:
        """The part of one host, until all are merged."""
        return self._beside(f"shard_{host}_of_{hosts}.npz")

    def all(self) -> list[Path]:
        """The files of a finished pass."""
        return [self.stats, self.examples, self.windows]

    def _beside(self, ending: str) -> Path:
        """demo_stats.json gives demo_examples.parquet, demo.json demo.examples.parquet: no two share a file."""
        name = self.stats.name.removesuffix(".json")
        pair = name.removesuffix("_stats")
        return self.stats.with_name(f"{pair}{'.' if pair == name else '_'}{ending}")


def write(
    files: Files, collected: Collected, passages: Passages, tokenizer: ChatTokenizer, provenance: Provenance
) -> int:
    """Write all three files; returns how many near duplicates were left out.

    Raises UserError where it cannot, and where no token counted.
    """
    if not collected.tokens:
        what = "only control tokens and headers of chat turns, which are not counted"
        raise UserError(f"{provenance.corpus}: no text to calibrate with; its samples hold {what}. Give other texts")
    duplicates = 0

    def examples() -> Iterator[dict[str, Any]]:
        nonlocal duplicates
        with progress("examples", len(collected.count), "features") as bar:
            for chosen, dropped in choose(collected, passages, tokenizer):
                duplicates += dropped
                bar.update()
                yield from _rows(chosen, passages, tokenizer)

    with set_aside(files.examples, files.windows, files.stats) as asides:
        _write_parquet(asides[0], examples(), _examples_schema(), provenance)
        _write_parquet(asides[1], _pool(collected, passages), _windows_schema(), provenance)
        save_stats(asides[2], collected.stats(), provenance)
    return duplicates


def _rows(examples: list[Example], passages: Passages, tokenizer: ChatTokenizer) -> Rows:
    document = np.array([e.document for e in examples], np.int64)
    offset = np.array([e.offset for e in examples], np.int64)
    return [
        {**vars(example), **_context(window.tolist(), example.kind != "held_out", tokenizer)}
        | {"sample": example.offset // STRIDE}
        for example, window in zip(examples, passages.contexts(document, offset), strict=True)
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


def _examples_schema() -> Any:
    import pyarrow as pa

    whole, text = pa.int32(), pa.string()
    return pa.schema(
        [
            pa.field("feature", whole, nullable=False),
            pa.field("kind", pa.dictionary(pa.int8(), text), nullable=False),  # top, random or held_out
            ("rank", pa.int16()),
            ("quantile", pa.float32()),  # among the drawn firings, 0 weakest; null for top
            ("activation", pa.float32()),
            ("document", whole),  # its number in the corpus
            ("sample", whole),  # which stretch of the document
            ("offset", whole),  # of the token in its document, BOS not counted
            ("ids", pa.list_(whole)),  # at most 12 tokens before, the token, at most 12 after
            ("at", pa.int8()),  # of the token in `ids`
            ("cut_before", pa.bool_()),  # the sample begins within the context
            ("cut_after", pa.bool_()),
            ("before", text),  # as text; null for held_out
            ("token", text),
            ("after", text),
        ]
    )


def _windows_schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("document", pa.int32()),
            ("offset", pa.int32()),  # of the window's first token
            ("ids", pa.list_(pa.int32())),
            # Feature e fires somewhere in the window where bit e % 8 of byte e // 8 is set.
            ("fired", pa.binary()),
        ]
    )


def _write_parquet(path: Path, rows: Iterable[dict[str, Any]], schema: Any, provenance: Provenance) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schema.with_metadata({"neuroscope": msgspec.json.encode(provenance)})
    rows = iter(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while lot := list(itertools.islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(lot, schema))
