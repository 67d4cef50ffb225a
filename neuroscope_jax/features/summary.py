"""A calibration in a few figures: what `calibrate show` prints as text or JSON and draws."""

import math
import re

import msgspec
import numpy as np

from neuroscope_jax.features.calibration import DENSE, RARE, FeatureStats, Provenance
from neuroscope_jax.features.labels import Labels

STATED_L0 = re.compile(r"average_l0_(\d{1,6})\b")  # in the path of a Gemma Scope SAE
FEW_TOKENS = 10_000  # in which a feature of usual density, 0.5 %, fires some fifty times
L0_FACTOR = 2  # from here on, measured and stated L0 do not describe the same use of an SAE
BINS_PER_DECADE = 2  # of the density histogram; with more, the rarest features (1, 2, 3 firings) would leave gaps


class FeatureRow(msgspec.Struct):
    """One feature that fired."""

    index: int
    label: str
    firings: int
    firing_rate: float
    mean_activation: float
    max_activation: float


class DensityBin(msgspec.Struct):
    """How many features have a log10 firing rate from `least` up to `most`."""

    least: float
    most: float
    features: int


class Summary(msgspec.Struct):
    """A calibration in a few figures; the counts are of features."""

    provenance: Provenance
    width: int
    tokens: int
    l0: float
    stated_l0: int | None  # None where the SAE's path states none
    warnings: list[str]
    dead: int  # never fired
    rare: int  # fired, but fewer than RARE times
    dense: int  # firing rate above DENSE
    filter_threshold: float
    above_threshold: int  # what the frequency filter suppresses
    density: list[DensityBin]
    top: list[FeatureRow]  # highest firing rate first


def summarise(
    stats: FeatureStats, provenance: Provenance, labels: Labels, top: int, filter_threshold: float
) -> Summary:
    """The figures, with the `top` features of the highest firing rate, fewer where fewer fired."""
    stated = STATED_L0.search(provenance.pair.sae_id)
    stated_l0 = int(stated[1]) if stated else None
    rate = stats.firing_rate
    return Summary(
        provenance=provenance,
        width=stats.width,
        tokens=stats.tokens,
        l0=stats.l0,
        stated_l0=stated_l0,
        warnings=[*_l0_warnings(stats.l0, stated_l0), *_token_warnings(stats.tokens)],
        dead=int((stats.count == 0).sum()),
        rare=int(((stats.count > 0) & (stats.count < RARE)).sum()),
        dense=int((rate > DENSE).sum()),
        filter_threshold=filter_threshold,
        above_threshold=int((rate > filter_threshold).sum()),
        density=_density(stats),
        top=_top(stats, labels, top),
    )


def _l0_warnings(l0: float, stated: int | None) -> list[str]:
    if not stated or stated / L0_FACTOR <= l0 <= stated * L0_FACTOR:
        return []
    return [
        f"L0 is {l0:.3g}, {l0 / stated:.2g} times the {stated} that the SAE's path states: "
        "look at the layer, --sae-input-norm and the corpus before relying on these figures"
    ]


def _token_warnings(tokens: int) -> list[str]:
    if tokens >= FEW_TOKENS:
        return []
    return [
        f"{tokens:,} tokens are few: rates below {3 / tokens:.1g} and most variances cannot be told; give more texts"
    ]


def _density(stats: FeatureStats) -> list[DensityBin]:
    """From the rate of a single firing up to 1; features that never fired are in no bin."""
    lowest = math.floor(-math.log10(stats.tokens) * BINS_PER_DECADE)
    edges = np.arange(min(lowest, -1), 1) / BINS_PER_DECADE
    found, _ = np.histogram(np.log10(stats.firing_rate[stats.count > 0]), edges)
    return [
        DensityBin(a, b, n) for a, b, n in zip(edges[:-1].tolist(), edges[1:].tolist(), found.tolist(), strict=True)
    ]


def _top(stats: FeatureStats, labels: Labels, top: int) -> list[FeatureRow]:
    order = np.argsort(-stats.count, kind="stable")[:top].tolist()
    return [
        FeatureRow(
            index=i,
            label=labels.text(i),
            firings=int(stats.count[i]),
            firing_rate=float(stats.firing_rate[i]),
            mean_activation=float(stats.mean_activation[i]),
            max_activation=float(stats.max_activation[i]),
        )
        for i in order
        if stats.count[i]
    ]
