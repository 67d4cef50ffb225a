"""Calibration statistics: what each feature usually does, read from a stats file."""

import dataclasses
from pathlib import Path

import msgspec
import numpy as np

from neuroscope_jax.config import NeuroscopeConfig, cache_folder
from neuroscope_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class FeatureStats:
    """Per-feature figures over a corpus, float32 [E]. A feature that never fired has mean and variance 0."""

    firing_rate: np.ndarray  # fraction of tokens with activation > 0
    mean_activation: np.ndarray  # over the tokens where it fires
    activation_variance: np.ndarray  # over the same tokens


class _StatsFile(msgspec.Struct):
    sae_id: str
    width: int
    firing_rate: list[float]
    mean_activation: list[float | None]
    activation_variance: list[float | None]


def stats_path(config: NeuroscopeConfig) -> Path:
    """Where the pair's statistics are looked for."""
    if config.calibration_path is not None:
        return Path(config.calibration_path)
    name = f"{config.neuronpedia_model_id}_{config.neuronpedia_sae_id}_stats.json"
    return cache_folder() / "calibration" / name


def load_stats(path: Path, sae_id: str, width: int) -> FeatureStats:
    """Read a stats file. Raises UserError where it is unreadable or belongs to another SAE or width."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_StatsFile)
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path}: not a readable calibration file: {error}") from error
    if (found.sae_id, found.width) != (sae_id, width):
        raise UserError(
            f"{path}: statistics of {found.sae_id} (width {found.width}); the SAE in use is {sae_id} (width {width})"
        )
    columns = {name: getattr(found, name) for name in ("firing_rate", "mean_activation", "activation_variance")}
    for name, values in columns.items():
        if len(values) != width:
            raise UserError(f"{path}: {name} has {len(values)} entries, expected {width}")
    return FeatureStats(**{n: np.array([v or 0.0 for v in values], np.float32) for n, values in columns.items()})
