"""The parquet files of a pass: each names in its metadata, under "neuroscope", the pass it belongs to."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.files import what_it_is

KEY = b"neuroscope"
ROWS_AT_ONCE = 50_000


def write(path: Path, tables: Iterable[Any], schema: Any, provenance: Provenance) -> None:
    """Write Arrow tables of one schema, one after the other; each becomes a row group."""
    import pyarrow.parquet as pq

    schema = schema.with_metadata({KEY: msgspec.json.encode(provenance)})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def in_tables(rows: Iterable[dict[str, Any]], schema: Any) -> Iterator[Any]:
    """Rows as Arrow tables of at most ROWS_AT_ONCE of them."""
    import pyarrow as pa

    rows = iter(rows)
    while lot := list(itertools.islice(rows, ROWS_AT_ONCE)):
        yield pa.Table.from_pylist(lot, schema)


def opened(path: Path, schema: Any) -> tuple[Any, Provenance]:
    """The pyarrow ParquetFile and the pass it belongs to. Raises UserError for one without the schema's columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        provenance = msgspec.json.decode(file.schema_arrow.metadata[KEY], type=Provenance)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; `neuroscope_jax calibrate run` writes it") from error
    except (OSError, pa.ArrowException, TypeError, KeyError, RecursionError, msgspec.MsgspecError) as error:
        expected = "a file of `neuroscope_jax calibrate run`; run that again"
        raise UserError(f"{path}: {what_it_is(path)}, expected {expected}") from error
    if missing := [name for name in schema.names if name not in file.schema_arrow.names]:
        raise UserError(
            f"{path}: lacks {', '.join(missing)}; it may be another file of the pass under this one's name. Copy the "
            "right one there, or make the files again with `neuroscope_jax calibrate run`"
        )
    return file, provenance
