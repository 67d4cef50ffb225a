"""A feature as a page's script reads it."""

import math
from typing import Any

import msgspec

from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.features.label_details import LabelDetail
from neuroscope_jax.pages.contexts import Context
from neuroscope_jax.pages.examples import Example

DIGITS = 4  # significant ones of an activation
Record = dict[str, Any]


class Texts:
    """The texts of a shard, each kept once; examples name them by their place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Where a text is in the table."""
        return self._places.setdefault(text, len(self._places))

    def table(self) -> list[str]:
        """All texts by their place."""
        return list(self._places)


def rounded(value: float) -> float:
    """With as many digits as are shown."""
    return float(f"{value:.{DIGITS}g}")


def record(
    stats: FeatureStats,
    feature: int,
    source: str | None,
    detail: LabelDetail | None,
    examples: list[tuple[Example, Context]],
    texts: Texts,
) -> Record:
    """Statistics, label and examples of a feature; figures that it has none of are null."""
    fired = stats.count[feature] > 0
    return {
        "count": int(stats.count[feature]),
        "mean": rounded(stats.mean_activation[feature]) if fired else None,
        "deviation": rounded(math.sqrt(stats.activation_variance[feature])) if fired else None,
        "max": rounded(stats.max_activation[feature]) if fired else None,
        "histogram": stats.histogram[feature].tolist(),
        "source": source,
        "label": msgspec.to_builtins(detail),
        "examples": [_example(example, context, texts) for example, context in examples],
    }


def _example(example: Example, context: Context, texts: Texts) -> Record:
    shades = [(i, rounded(a)) for i, a in enumerate(context.activations) if a > 0]
    return {
        "kind": example.kind,
        "quantile": example.quantile,
        "activation": rounded(example.activation),
        "document": example.document,
        "sample": example.sample,
        "offset": example.offset,
        "cut": [example.cut_before, example.cut_after],
        "at": context.at,
        "tokens": [texts.place(text) for text in context.texts],
        "shades": [figure for pair in shades for figure in pair],
    }
