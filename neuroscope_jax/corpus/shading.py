"""How strongly a feature fires at each token around its examples: what a page shades them by.

    passages ─▶ cut model, once ─▶ SAE ─▶ only (example, its tokens, its feature) ─▶ …_shading.parquet

A pass keeps the activation of the firing token alone. Here its samples run again, in the settings of the pass, for the
features that are asked for; what was worked out before for the same pass is kept.
"""

import dataclasses
import logging
from collections.abc import Collection
from typing import Any

import numpy as np
from jaxtyping import Float

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import parquet, schemas, setup
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.corpus.shading_run import Asked, activations_around
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.files import set_aside
from neuroscope_jax.models.explained import explained

logger = logging.getLogger(__name__)

SHADED = ("top", "random")  # kinds of examples; held-out ones are shown to nobody
ROWS_AT_ONCE = 5_000


class Shading:
    """Activations around examples, read from the file as they are asked for: cheapest by rising feature."""

    def __init__(self, file: Any) -> None:
        self._file = file
        statistics = (file.metadata.row_group(i).column(0).statistics for i in range(file.num_row_groups))
        self._ranges = [(each.min, each.max) for each in statistics]
        self._held: tuple[int, dict[str, np.ndarray]] = -1, {}

    def of(self, feature: int) -> dict[tuple[int, int], Float[np.ndarray, " n"]]:
        """By (document, offset) of each top and random example, float32 activations at the tokens of its `ids`.

        0 at control tokens and turn headers, which are in no statistic. Empty for a feature without examples.
        """
        found = {}
        for i in [i for i, (least, most) in enumerate(self._ranges) if least <= feature <= most]:
            group = self._group(i)
            first, last = np.searchsorted(group["feature"], [feature, feature + 1])
            for row in range(int(first), int(last)):
                name = int(group["document"][row]), int(group["offset"][row])
                found[name] = group["values"][group["ends"][row] : group["ends"][row + 1]]
        return found

    def _group(self, number: int) -> dict[str, np.ndarray]:
        if self._held[0] != number:
            table = self._file.read_row_group(number)
            columns = {name: table[name].to_numpy() for name in ("feature", "document", "offset")}
            lists = table["activations"].combine_chunks()
            self._held = number, columns | {"values": lists.values.to_numpy(), "ends": lists.offsets.to_numpy()}
        return self._held[1]


def shading(config: NeuroscopeConfig, files: Files, features: Collection[int] | None = None) -> Shading:
    """Of these features, or all, around the examples in `files`; runs the model for those not there yet.

    Raises UserError for files of different passes or of another pair, and for a feature that the SAE lacks.
    """
    passages, provenance = parquet.opened(files.passages, schemas.passages())
    asked = _asked(files, features, provenance)
    pair = _pair_of(config, files, provenance)
    earlier = _earlier(files, provenance)
    fresh = asked if earlier is None else asked.some(~np.isin(asked.feature, earlier["feature"].to_numpy()))
    if len(fresh) or earlier is None:
        logger.info("shading: %d examples of %d features", len(fresh), len(np.unique(fresh.feature)))
        with explained(pair.folder, "--dtype bfloat16"):
            try:
                values = activations_around(pair, fresh, passages)
            except LookupError as error:
                raise UserError(f"{files.passages}: {error}; run `neuroscope_jax calibrate run` again") from error
        _write(files, _table(fresh, values), earlier, provenance)
    return Shading(parquet.opened(files.shading, schemas.shading())[0])


def _pair_of(config: NeuroscopeConfig, files: Files, provenance: Provenance) -> setup.Pair:
    """The pair of the config, in the dtype and with the input norm of the pass."""
    settings: dict[str, Any] = {"dtype": provenance.dtype, "sae_input_norm": provenance.sae_input_norm}
    pair = setup.find(dataclasses.replace(config, **settings))
    misfits = provenance.pair.misfits(setup.identity(pair, provenance.pair.width))
    if misfits:
        raise UserError(f"{files.passages}: made with {' and '.join(misfits)}; name its pair with --config or --model")
    return pair


def _asked(files: Files, features: Collection[int] | None, provenance: Provenance) -> Asked:
    """The examples to be shaded, by rising feature."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    run = parquet.opened(files.examples, schemas.examples())[1].run
    if run != provenance.run:
        passes = f"of pass {run}, but {files.passages.name} is of pass {provenance.run}"
        raise UserError(f"{files.examples}: {passes}; run `neuroscope_jax calibrate run` again")
    strange = [f for f in features or () if not 0 <= f < provenance.pair.width]
    if strange:
        raise UserError(f"feature {strange[0]}: the SAE has features 0 to {provenance.pair.width - 1}")
    wanted = pc.field("kind").isin(SHADED)
    if features is not None:
        wanted &= pc.field("feature").isin(pa.array(sorted(features), pa.int32()))
    names = ["feature", "document", "offset", "at"]
    table = pq.read_table(files.examples, columns=[*names, "ids"], filters=wanted)
    columns = [table[name].to_numpy() for name in names] + [pc.list_value_length(table["ids"]).to_numpy()]
    return Asked(*(column.astype(np.int64) for column in columns))


def _earlier(files: Files, provenance: Provenance) -> Any:
    """What was worked out before for the same pass, as a table; None where there is nothing of use."""
    if not files.shading.exists():
        return None
    try:
        file, made_for = parquet.opened(files.shading, schemas.shading())
    except UserError as error:
        logger.warning("%s", error)
        return None
    return file.read() if made_for.run == provenance.run else None


def _table(asked: Asked, values: Float[np.ndarray, "n 25"]) -> Any:
    import pyarrow as pa

    inside = np.arange(values.shape[1]) < asked.length[:, None]
    ends = np.cumsum([0, *asked.length], dtype=np.int32)
    activations = pa.ListArray.from_arrays(ends, values[inside])
    return pa.table([asked.feature, asked.document, asked.offset, activations], schema=schemas.shading())


def _write(files: Files, table: Any, earlier: Any, provenance: Provenance) -> None:
    import pyarrow as pa

    if earlier is not None:
        table = pa.concat_tables([table, earlier.replace_schema_metadata()]).sort_by("feature")
    lots = (table.slice(at, ROWS_AT_ONCE) for at in range(0, len(table), ROWS_AT_ONCE))
    with set_aside(files.shading) as (aside,):
        parquet.write(aside, lots, schemas.shading(), provenance)
