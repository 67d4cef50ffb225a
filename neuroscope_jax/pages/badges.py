"""What stands out about a feature: the flags of its row, the badges of its page."""

from neuroscope_jax.features.calibration import DENSE, RARE, FeatureStats
from neuroscope_jax.features.label_details import LOW, LabelDetail

# Name and meaning. A feature's flags are one number, bit i for the i-th of these.
FLAGS = {
    "dead": "never fired in the corpus pass",
    "rare": f"fired fewer than {RARE} times",
    "dense": f"fires on more than {DENSE:.0%} of tokens",
    "low score": f"its label scores below {LOW:.2f}",
    "too few texts to score": "its label could not be scored",
}


def flags(stats: FeatureStats, feature: int, detail: LabelDetail | None) -> int:
    """The flags of a feature."""
    count, score = int(stats.count[feature]), detail.score if detail else None
    holds = {
        "dead": count == 0,
        "rare": 0 < count < RARE,
        "dense": count > DENSE * stats.tokens,
        "low score": score is not None and score.low_confidence,
        "too few texts to score": score is not None and score.status == "insufficient",
    }
    return sum(1 << i for i, name in enumerate(FLAGS) if holds[name])
