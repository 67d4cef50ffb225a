"""A summary of a calibration as text, at most 80 columns wide."""

import textwrap
from collections.abc import Iterator

from neuroscope_jax.features.calibration import DENSE, RARE
from neuroscope_jax.features.summary import Summary

WIDTH = 80
MARGIN = 10  # columns of the words on the left
BAR = 48  # columns of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"


def as_text(summary: Summary) -> str:
    """Where the figures come from, what they are, the densest features, the histogram of densities."""
    return "\n".join([*_facts(summary), "", *_top(summary), "", *_histogram(summary)])


def _facts(summary: Summary) -> Iterator[str]:
    made, pair, width = summary.provenance, summary.provenance.pair, summary.width
    yield from _fact("model", pair.model_id)
    yield from _fact("SAE", f"{pair.sae_id}, {width:,} features, after layer {pair.layer}")
    documents = f"{made.corpus_documents:,} documents, {made.samples:,} samples of at most {made.sample_length} tokens"
    yield from _fact("corpus", f"{made.corpus}: {documents}")
    yield from _fact("made", f"{made.made}, neuroscope {made.version}, {made.dtype}, input norm {made.sae_input_norm}")
    yield from _fact("tokens", f"{summary.tokens:,} ({made.bos})")
    stated = "its path states none" if summary.stated_l0 is None else f"{summary.stated_l0} stated by the SAE's path"
    yield from _fact("L0", f"{summary.l0:.4g} measured, {stated}")
    for warning in summary.warnings:
        yield from _fact("WARNING", warning)
    # No firing among N tokens leaves rates up to 3/N likely: (1 - 3/N)^N is 5 %.
    yield from _fact("dead", _of(summary.dead, width) + f"never fired: rarer than {3 / summary.tokens:.1e}, 95 % sure")
    yield from _fact("rare", _of(summary.rare, width) + f"fired fewer than {RARE} times")
    yield from _fact("dense", _of(summary.dense, width) + f"fire on more than {DENSE:.0%} of tokens")
    threshold = f"fire on more than {100 * summary.filter_threshold:.4g}%: hidden by --feature-filter frequency"
    yield from _fact("filtered", _of(summary.above_threshold, width) + threshold)


def _of(count: int, width: int) -> str:
    return f"{count:,} ({count / width:.1%}) "


def _fact(name: str, value: str) -> list[str]:
    return textwrap.wrap(f"{name:<{MARGIN}}{value}", WIDTH, subsequent_indent=" " * MARGIN, break_on_hyphens=False)


def _top(summary: Summary) -> Iterator[str]:
    head = f"{'feature':>8}{'density':>9}{'mean':>9}{'max':>9}  "
    yield head + "label"
    for row in summary.top:
        figures = f"{row.index:>8}{row.firing_rate:>9.2%}{row.mean_activation:>9.4g}{row.max_activation:>9.4g}  "
        yield figures + _shortened(row.label, WIDTH - len(head))


def _shortened(label: str, most: int) -> str:
    """One line without control characters: labels may come from anywhere, and a terminal obeys what it is sent."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in label).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _histogram(summary: Summary) -> Iterator[str]:
    yield "features by log10 of density"
    most = max((found.features for found in summary.density), default=0) or 1
    for found in summary.density:
        yield f"{found.least:>6.1f} to {found.most:>4.1f} {found.features:>7,}  {_bar(found.features / most)}".rstrip()


def _bar(fraction: float) -> str:
    """Anything above zero shows at least an eighth of a column."""
    eighths = max(round(fraction * BAR * 8), 1) if fraction else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
