"""Readers of texts, one a file format: each yields (row, text) and never holds more than a small part of its file.

What one line or row lacks is noted and passed over; Damaged ends a file that cannot be read any further.
"""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from neuroscope_jax.files import what_it_is

Note = Callable[[str, str, str], None]  # place within the file, reason, detail
Reader = Callable[[Path, str, Note], Iterator[tuple[int, str]]]
ROWS = 64  # of a parquet file in memory at once
LFS_POINTER = "version https://git-lfs"


class Damaged(Exception):
    """A file is not what its ending says, or broke off; the arguments are the reason and a detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason + (f" ({detail})" if detail else ""))
        self.reason, self.detail = reason, detail


def read_text(path: Path, text_field: str, note: Note) -> Iterator[tuple[int, str]]:
    """The whole file as one document."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Damaged("unreadable", error.strerror or "") from error
    except UnicodeDecodeError as error:
        raise Damaged("not UTF-8", f"at byte {error.start:,}") from error
    if text.startswith(LFS_POINTER):
        raise Damaged("damaged", what_it_is(path))
    if _not_empty(text, "", note):
        yield 0, text


def read_json_lines(path: Path, text_field: str, note: Note) -> Iterator[tuple[int, str]]:
    """One JSON object a line, the text in `text_field`."""
    try:
        with path.open("rb") as file:
            yield from _lines(path, file, text_field, note)
    except OSError as error:
        raise Damaged("unreadable", error.strerror or "") from error


def read_gzip_json_lines(path: Path, text_field: str, note: Note) -> Iterator[tuple[int, str]]:
    """The same, compressed."""
    try:
        with gzip.open(path) as file:
            yield from _lines(path, file, text_field, note)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Damaged("damaged", what_it_is(path)) from error
    except OSError as error:
        raise Damaged("unreadable", error.strerror or "") from error


def read_parquet(path: Path, text_field: str, note: Note) -> Iterator[tuple[int, str]]:
    """One row a document, the text in the column `text_field`."""
    import pyarrow
    from pyarrow import parquet

    row = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            _check_column(file.schema_arrow, text_field)
            for batch in file.iter_batches(batch_size=ROWS, columns=[text_field]):
                for value in as_bytes(batch.column(0)):
                    if text := _decoded(value, f"row {row + 1:,}", note):
                        yield row, text
                    row += 1
    except (pyarrow.ArrowException, OSError) as error:
        raise Damaged("damaged", what_it_is(path)) from error


READERS: dict[str, Reader] = {
    ".txt": read_text,
    ".jsonl": read_json_lines,
    ".jsonl.gz": read_gzip_json_lines,
    ".parquet": read_parquet,
}
ENDINGS = ", ".join(READERS)


def reader_of(path: Path) -> Reader | None:
    """By the file's ending, in capitals or not."""
    return next((reader for ending, reader in READERS.items() if path.name.lower().endswith(ending)), None)


def as_bytes(column: Any) -> list[bytes | None]:
    """The values of an Arrow column of text, not yet decoded: files hold what is no UTF-8 too."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: list[bytes | None] = column.cast(pyarrow.large_binary()).to_pylist()
    return values


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of those that hold text."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _check_column(schema: Any, text_field: str) -> None:
    if text_field not in schema.names:
        raise Damaged(f"no column {text_field!r}", f"it has {', '.join(schema.names)}")
    if schema.names.count(text_field) > 1:
        raise Damaged(f"several columns {text_field!r}", f"it has {', '.join(schema.names)}")
    kind = schema.field(text_field).type
    if not is_text(kind):
        raise Damaged(f"column {text_field!r} is no text", f"it is {kind}")


def _lines(path: Path, file: Iterable[bytes], text_field: str, note: Note) -> Iterator[tuple[int, str]]:
    line_type = msgspec.defstruct("Line", [("text", str)], rename={"text": text_field})
    decoder = msgspec.json.Decoder(line_type)
    for row, line in enumerate(file):
        if row == 0:
            line = line.removeprefix(b"\xef\xbb\xbf")
            if line.startswith(LFS_POINTER.encode()):
                raise Damaged("damaged", what_it_is(path))
        if not line.strip():
            continue
        if text := _text_of(line, decoder, f"line {row + 1:,}", text_field, note):
            yield row, text


def _text_of(line: bytes, decoder: Any, place: str, text_field: str, note: Note) -> str:
    """The text, or "" where there is none, which is noted."""
    text = ""
    try:
        text = decoder.decode(line).text
    except msgspec.ValidationError as error:  # names the field and the types, never a value
        note(place, f"no text in field {text_field!r}", str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        note(place, "broken JSON", str(error))
    else:
        text = _not_empty(text, place, note)
    return text


def _decoded(value: bytes | None, place: str, note: Note) -> str:
    try:
        return _not_empty((value or b"").decode(), place, note)
    except UnicodeDecodeError:
        note(place, "not UTF-8", "")
    return ""


def _not_empty(text: str, place: str, note: Note) -> str:
    if text.strip():
        return text
    note(place, "empty", "")
    return ""
