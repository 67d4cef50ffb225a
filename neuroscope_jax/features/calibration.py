"""Calibration statistics: what each feature does over a corpus, and the JSON file that keeps it.

The file holds one list for each figure, in the order of the features. What has no value is null, never NaN: a feature
that did not fire has no mean, variance or maximum.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from neuroscope_jax.config import NeuroscopeConfig, cache_folder
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json, set_aside
from neuroscope_jax.identity import PairIdentity
from neuroscope_jax.models.hub import DEMO, DEMO_FOLDER

BINS = 32
# Bin 0 counts activations below the first edge, bin i those from edge i-1 up to, not including, edge i, the last bin
# those from the last edge up: np.searchsorted(HISTOGRAM_EDGES, activation, side="right"). Edges are half an octave
# apart from 2^-3 to 2^12, rounded to float32, in which activations are compared with them everywhere.
HISTOGRAM_EDGES = np.exp2(np.arange(-6, 25) / 2).astype(np.float32)

RARE = 10  # firings; with fewer, a feature's figures are mostly chance
DENSE = 0.1  # firing rate above which a feature counts as dense

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # what int64 holds


@dataclasses.dataclass(frozen=True)
class FeatureStats:
    """Figures of every feature over the same tokens; BOS, EOS, control and padding tokens are not among them.

    A feature that never fired has mean, variance and maximum 0 here.
    """

    tokens: int
    count: np.ndarray  # int64 [E], tokens with activation > 0
    mean_activation: np.ndarray  # float64 [E], over the tokens where it fires
    activation_variance: np.ndarray  # float64 [E], over the same tokens, divided by their number
    max_activation: np.ndarray  # float64 [E]
    histogram: np.ndarray  # int64 [E, BINS], firings by activation

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.count.size)

    @property
    def firing_rate(self) -> np.ndarray:
        """Fraction of tokens on which each feature fires, float64 [E]."""
        return self.count / self.tokens

    @property
    def l0(self) -> float:
        """Features active at a token, on average."""
        return float(self.count.sum() / self.tokens)


@dataclasses.dataclass(frozen=True)
class Provenance:
    """How statistics came about; enough to do it again."""

    pair: PairIdentity
    model_revision: str | None  # commit on the hub, where the files came from it
    sae_revision: str | None
    tokenizer_sha256: str  # of tokenizer.json
    corpus: str  # for people: a path, or the sources and their weights
    corpus_sha256: str  # of all texts in order
    corpus_documents: int
    samples: int
    sample_length: int  # tokens of a sample at most, BOS not counted
    seed: int
    dtype: str  # of the weights
    bos: str  # what was done about BOS, in words
    sae_input_norm: str  # as it came out: none, rms or scalar
    made: str  # ISO 8601 date and time
    version: str  # of this program
    run: str  # shared by the files of one run


class _StatsFile(msgspec.Struct, kw_only=True):
    provenance: Provenance
    tokens: Count
    l0: float
    histogram_edges: list[float]
    firing_rate: list[float]
    mean_activation: list[float | None]
    activation_variance: list[float | None]
    max_activation: list[float | None]
    count: list[Count]
    histogram: list[list[Count]]


LARGEST = 1e30  # an activation beyond this is none: float32, in which the step computes, ends at 3e38
NULLABLE = ("mean_activation", "activation_variance", "max_activation")  # null where a feature never fired


def stats_path(config: NeuroscopeConfig) -> Path:
    """Where the pair's statistics are looked for: the file asked for, the cache's, the one bundled with the demo."""
    if config.calibration_path is not None:
        return Path(config.calibration_path)
    cached = cached_stats_path(config)
    bundled = DEMO_FOLDER / "stats.json"
    is_demo = (config.model_id, config.sae_repo, config.sae_local_path) == (DEMO, DEMO, None)
    return bundled if is_demo and bundled.is_file() and not cached.exists() else cached


def cached_stats_path(config: NeuroscopeConfig) -> Path:
    """Where a calibration of this pair is kept."""
    name = f"{config.neuronpedia_model_id}_{config.neuronpedia_sae_id}_stats.json"
    return cache_folder() / "calibration" / name


def load_stats(path: Path, identity: PairIdentity) -> tuple[FeatureStats, Provenance]:
    """Statistics of the pair in use. Raises UserError for an unreadable file, and for another model, SAE or width."""
    stats, provenance = read_stats(path)
    misfits = provenance.pair.misfits(identity)
    if misfits:
        raise UserError(
            f"{path}: statistics of {' and '.join(misfits)}; "
            "calibrate this pair with `neuroscope_jax calibrate run`, or name its file with --calibration-path"
        )
    return stats, provenance


def read_stats(path: Path) -> tuple[FeatureStats, Provenance]:
    """Statistics and where they come from, whichever pair they belong to. Raises UserError naming file and field."""
    try:
        found = read_json(path, _StatsFile)
    except UserError as error:
        field = _not_finite(path)
        raise UserError(f"{path}: {field} is not a finite number, where JSON has null") if field else error from error
    try:
        stats = _checked(found)
    except ValueError as error:
        raise UserError(f"{path}: {error}; make the file again with `neuroscope_jax calibrate run`") from error
    return stats, found.provenance


def save_stats(path: Path, stats: FeatureStats, provenance: Provenance) -> None:
    """Write a stats file, all of it or nothing: an earlier one stays as it is where this one cannot be finished.

    Raises UserError where the disk is full or the folder cannot be written, ValueError for impossible statistics.
    """
    _check(stats, provenance.pair.width)
    file = _StatsFile(
        provenance=provenance,
        tokens=int(stats.tokens),
        l0=stats.l0,
        histogram_edges=HISTOGRAM_EDGES.tolist(),
        firing_rate=stats.firing_rate.tolist(),
        count=stats.count.tolist(),
        histogram=stats.histogram.tolist(),
        **{name: _with_nulls(getattr(stats, name), stats.count) for name in NULLABLE},
    )
    with set_aside(path) as (aside,):
        aside.write_bytes(msgspec.json.encode(file))


def _with_nulls(figures: np.ndarray, count: np.ndarray) -> list[float | None]:
    return [figure if n else None for figure, n in zip(figures.tolist(), count.tolist(), strict=True)]


def _checked(file: _StatsFile) -> FeatureStats:
    """The file's columns as arrays. Raises ValueError naming the field that cannot be."""
    width = file.provenance.pair.width
    for name in ("count", "firing_rate", *NULLABLE, "histogram"):
        if len(getattr(file, name)) != width:
            raise ValueError(f"{name} has {len(getattr(file, name))} entries, expected {width}, one a feature")
    if not np.array_equal(file.histogram_edges, HISTOGRAM_EDGES):
        raise ValueError(f"histogram_edges is {file.histogram_edges}, expected {HISTOGRAM_EDGES.tolist()}")
    count = np.array(file.count, np.int64)
    _require("histogram", [len(row) == BINS for row in file.histogram], file.histogram, f"{BINS} counts")
    for name in NULLABLE:
        column = getattr(file, name)
        holds = [(value is None) == (n == 0) for value, n in zip(column, file.count, strict=True)]
        _require(name, holds, column, "a number where the feature fired, else null")
    figures = {name: np.array([value or 0.0 for value in getattr(file, name)], np.float64) for name in NULLABLE}
    stats = FeatureStats(file.tokens, count, histogram=np.array(file.histogram, np.int64), **figures)
    _check(stats, width)
    agrees = np.isclose(file.firing_rate, stats.firing_rate, rtol=1e-9, atol=0)
    _require("firing_rate", agrees, file.firing_rate, "count / tokens")
    if not math.isclose(file.l0, stats.l0, rel_tol=1e-9):
        raise ValueError(f"l0 is {file.l0}, expected the sum of firing_rate, {stats.l0}")
    return stats


def _check(stats: FeatureStats, width: int) -> None:
    """Raises ValueError naming the first figure that no corpus could have given."""
    for name in ("count", *NULLABLE, "histogram"):
        wanted = (width, BINS) if name == "histogram" else (width,)
        if getattr(stats, name).shape != wanted:
            raise ValueError(f"{name} is {list(getattr(stats, name).shape)}, expected {list(wanted)}")
    count, mean, fired = stats.count, stats.mean_activation, stats.count > 0
    if stats.tokens < 1:
        raise ValueError(f"tokens is {stats.tokens}, expected at least 1")
    _require("count", (count >= 0) & (count <= stats.tokens), count, f"0 to tokens, {stats.tokens}")
    for name in NULLABLE:
        figures = getattr(stats, name)
        least = 0 if name == "activation_variance" else np.finfo(np.float64).tiny
        fits = np.where(fired, (figures >= least) & (figures <= LARGEST), figures == 0)
        _require(name, fits, figures, f"at most {LARGEST:.0e}, positive where the feature fired and 0 where it did not")
    rounding = 1e-4  # of a mean summed in float32
    _require("max_activation", stats.max_activation >= mean * (1 - rounding), stats.max_activation, "at least the mean")
    fits = (stats.histogram >= 0).all(axis=1) & (stats.histogram.sum(axis=1) == count)
    _require("histogram", fits, stats.histogram, "counts that add up to count")


def _require(
    name: str, holds: Sequence[bool] | np.ndarray, values: Sequence[object] | np.ndarray, expected: str
) -> None:
    """Raises ValueError for the first value that does not hold."""
    if not np.all(holds):
        index = int(np.argmin(holds))
        raise ValueError(f"{name}[{index}] is {values[index]}, expected {expected}")


def _not_finite(path: Path) -> str | None:
    """The field with a NaN or Infinity, which are not JSON but which some programs write as if they were."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    for name, value in fields.items() if isinstance(fields, dict) else ():
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, float) and not math.isfinite(item):
                return f"{name}[{index}]" if isinstance(value, list) else name
    return None
