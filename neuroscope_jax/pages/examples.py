"""The examples a page shows, read from the parquet file of a pass a row group at a time."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

from neuroscope_jax.corpus import parquet, schemas
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.files import what_it_is

SHOWN = ("top", "random")  # held-out ones only score labels


@dataclasses.dataclass(frozen=True)
class Example:
    """One firing of a feature in its context."""

    kind: str  # top or random
    quantile: float | None  # among the drawn firings, 0 the weakest; None where it was not drawn
    activation: float
    document: int
    sample: int  # which stretch of the document
    offset: int  # of the token in the document
    ids: list[int]
    at: int  # of the token in `ids`
    cut_before: bool  # the sample begins within the context
    cut_after: bool
    before: str
    token: str
    after: str


COLUMNS = [field.name for field in dataclasses.fields(Example)]


class Examples:
    """Those of every feature; cheapest asked for by rising feature. Raises UserError for a file of another pass."""

    def __init__(self, path: Path, provenance: Provenance) -> None:
        self._path, (self._file, made) = path, parquet.opened(path, schemas.examples())
        if made.run != provenance.run:
            raise UserError(
                f"{path}: of pass {made.run}, but the statistics beside it are of pass {provenance.run}; "
                "make both again with `neuroscope_jax calibrate run`"
            )
        groups = (self._file.metadata.row_group(i).column(0).statistics for i in range(self._file.num_row_groups))
        self._ranges = [(group.min, group.max) for group in groups]
        self._held: tuple[int, dict[int, list[Example]]] = -1, {}

    def of(self, feature: int) -> list[Example]:
        """The strongest first, then random ones, the weakest of those first; none of a feature that never fired."""
        groups = [i for i, (least, most) in enumerate(self._ranges) if least <= feature <= most]
        return list(itertools.chain.from_iterable(self._group(i).get(feature, []) for i in groups))

    def _group(self, number: int) -> dict[int, list[Example]]:
        """The examples of one row group by feature."""
        if self._held[0] != number:
            found: dict[int, list[Example]] = {}
            for row in self._rows(number):
                found.setdefault(row.pop("feature"), []).append(Example(**row))
            self._held = number, found
        return self._held[1]

    def _rows(self, number: int) -> list[dict[str, Any]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            table = self._file.read_row_group(number, ["feature", *COLUMNS])
        except (OSError, pa.ArrowException) as error:
            again = "make it again with `neuroscope_jax calibrate run`"
            raise UserError(f"{self._path}: {what_it_is(self._path)} ({error}); {again}") from error
        rows: list[dict[str, Any]] = table.filter(pc.field("kind").isin(SHOWN)).to_pylist()
        return rows
