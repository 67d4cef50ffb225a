"""The index: what its list shows of each feature, one column a list, in the order of the rows."""

from typing import Any

from neuroscope_jax.pages.badges import flags
from neuroscope_jax.pages.known import Known, Measured
from neuroscope_jax.pages.record import rounded


def columns(known: Known, measured: Measured, features: list[int]) -> dict[str, list[Any]]:
    """One entry a feature in each; null where there is nothing to say."""
    stats = measured.stats
    details = [known.detail(feature) for feature in features]
    scores = [detail.score if detail else None for detail in details]
    fired = [feature for feature in features if stats.count[feature]]
    largest = {feature: rounded(stats.max_activation[feature]) for feature in fired}
    return {
        "id": features,
        "label": [known.label(feature) for feature in features],
        "source": [known.source(feature) for feature in features],
        "confidence": [detail.confidence if detail and not detail.replaced else None for detail in details],
        "score": [score.balanced_accuracy if score else None for score in scores],
        "rate": [rounded(rate) for rate in stats.firing_rate[features].tolist()],
        "max": [largest.get(feature) for feature in features],
        "flags": [flags(stats, feature, detail) for feature, detail in zip(features, details, strict=True)],
    }
