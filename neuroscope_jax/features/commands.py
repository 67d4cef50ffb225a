"""`calibrate show`."""

import sys
from pathlib import Path

import msgspec

from neuroscope_jax import flags
from neuroscope_jax.config import NeuroscopeConfig, load_preset, preset_names
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance, read_stats, stats_path
from neuroscope_jax.features.labels import Labels, load_labels
from neuroscope_jax.features.plot import save_plot
from neuroscope_jax.features.report import as_text
from neuroscope_jax.features.summary import summarise
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PairFlags

TOP = 20  # features listed


@flags.command(**SHOWN_DEFAULTS, filter_threshold=NeuroscopeConfig.filter_threshold)
@expanded
def show(
    *,
    pair: PairFlags,
    stats: str | None = None,
    top: int = TOP,
    json: bool = False,
    plot: str | None = None,
    filter_threshold: float | None = None,
) -> str:
    """Calibration statistics: where they come from, L0, dead and dense features, the densest ones by name.

    Without --stats: the file that `serve` with the same flags would use.

    Args:
        stats: a statistics file
        top: how many features to list, highest firing rate first
        json: print JSON instead of text
        plot: also draw densities and L0 to this file; needs the extra `plot`
        filter_threshold: firing rate above which a feature counts as always on
    """
    if top < 0:
        raise UserError(f"--top {top}: expected 0 or more")
    resolved = pair.resolved(calibration_path=stats, filter_threshold=filter_threshold)
    path = stats_path(resolved)
    if stats is None and not path.exists():
        raise UserError(
            f"no statistics of {resolved.sae_id} on {resolved.model_id}: there is no {path}; "
            "make them with `neuroscope_jax calibrate run`, or name a file with --stats"
        )
    return shown(path, resolved, top, json, Path(plot) if plot else None)


def shown(path: Path, config: NeuroscopeConfig, top: int = TOP, json: bool = False, plot: Path | None = None) -> str:
    """The summary of a statistics file as text that stdout can take, or as JSON; drawn to `plot` as well."""
    stats, provenance = read_stats(path)
    summary = summarise(stats, provenance, _labels(config, provenance), top, config.filter_threshold)
    if plot is not None:
        save_plot(summary, plot)
    if json:
        return msgspec.json.format(msgspec.json.encode(summary)).decode()
    encoding = sys.stdout.encoding or "utf-8"
    return as_text(summary).encode(encoding, "replace").decode(encoding)


def _labels(config: NeuroscopeConfig, provenance: Provenance) -> Labels:
    """Of the SAE the statistics belong to, which need not be the config's where a file was named."""
    sae_id, width = provenance.pair.sae_id, provenance.pair.width
    known = next((c for c in (config, *map(load_preset, preset_names())) if c.sae_id == sae_id), None)
    return load_labels(known, width, provenance.pair) if known else Labels(sae_id, width, "numeric", {})
