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


def opened(path: Path) -> tuple[Any, Provenance]:
    """The pyarrow ParquetFile and the pass it belongs to. Raises UserError for any other file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        return file, msgspec.json.decode(file.schema_arrow.metadata[KEY], type=Provenance)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; `neuroscope_jax calibrate run` writes it") from error
    except (OSError, pa.ArrowException, TypeError, KeyError, msgspec.MsgspecError) as error:
        expected = "a file of `neuroscope_jax calibrate run`; run that again"
        raise UserError(f"{path}: {what_it_is(path)}, expected {expected}") from error
