"""A summary of a calibration as a picture. Needs the extra `plot`."""

import io
import math
from pathlib import Path
from typing import Any

from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import DENSE
from neuroscope_jax.features.summary import L0_FACTOR, Summary

INCHES = (9.0, 5.0)
INK, SOFT, WARN = "#2b5d8a", "#9bb8d3", "#b5462f"


def save_plot(summary: Summary, path: Path) -> None:
    """Draw densities and L0 to a file, in the format its ending names.

    Raises UserError where matplotlib is absent, does not know the ending, or the file cannot be written.
    """
    figure = _figure(summary)
    image = io.BytesIO()
    try:
        figure.savefig(image, format=path.suffix.removeprefix(".") or "png", dpi=120)
    except ValueError as error:
        raise UserError(f"--plot {path}: {error}; end the name in .png") from error
    try:
        path.write_bytes(image.getvalue())
    except OSError as error:
        raise UserError(f"--plot {path}: cannot be written: {error.strerror}") from error


def _figure(summary: Summary) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(
            "--plot needs matplotlib: install the extra with `pip install 'neuroscope-jax[plot]'`"
        ) from error
    figure = Figure(figsize=INCHES, layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display
    density, l0 = figure.subplots(2, 1, height_ratios=[4, 1])
    _draw_density(density, summary)
    _draw_l0(l0, summary)
    pair = summary.provenance.pair
    figure.suptitle(f"{pair.sae_id} on {pair.model_id}: {summary.tokens:,} tokens", fontsize=10)
    return figure


def _draw_density(axes: Any, summary: Summary) -> None:
    bins = summary.density
    axes.bar(
        [b.least for b in bins],
        [b.features for b in bins],
        width=[b.most - b.least for b in bins],
        align="edge",
        color=SOFT,
        edgecolor=INK,
    )
    if summary.filter_threshold > 0:
        label = f"above the filter threshold, {summary.filter_threshold:g}: {summary.above_threshold:,}"
        axes.axvline(math.log10(summary.filter_threshold), color=WARN, label=label)
    axes.axvline(math.log10(DENSE), color=INK, linestyle="--", label=f"dense, above {DENSE:g}: {summary.dense:,}")
    axes.set_xlabel(f"log10 of density (fraction of tokens on which a feature fires); {summary.dead:,} never fired")
    axes.set_ylabel("features")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)  # above, clear of the bars


def _draw_l0(axes: Any, summary: Summary) -> None:
    rows = [("measured", summary.l0, INK)]
    if summary.stated_l0 is not None:
        rows.append(("stated", float(summary.stated_l0), SOFT))
        axes.axvspan(summary.stated_l0 / L0_FACTOR, summary.stated_l0 * L0_FACTOR, color=SOFT, alpha=0.25)
    names, values, colours = zip(*rows, strict=True)
    bars = axes.barh(names, values, color=colours)
    axes.bar_label(bars, [f" {value:.4g}" for value in values])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    shaded = f"; shaded: within a factor of {L0_FACTOR} of what is stated" if summary.stated_l0 is not None else ""
    axes.set_xlabel(f"L0, features active at a token on average{shaded}")
