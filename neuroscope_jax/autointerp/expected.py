"""What a run will cost: labels counted one by one, scores from a sample of the features spread over all of them."""

import math
from collections.abc import Iterator, Mapping

from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.labelling import Labelling
from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.rounds import Rounds, scaled
from neuroscope_jax.autointerp.scores import control_size
from neuroscope_jax.autointerp.scoring import Scoring
from neuroscope_jax.autointerp.spending import Estimate

SAMPLED = 1_024  # features whose sequences are drawn
PLACEHOLDER = "texts and words of some ordinary kind"  # for a label that is not written yet, about as long

NOTHING = Estimate(0, 0, 0, 0, 0.0, "")


def of_labels(rounds: Rounds, labelling: Labelling) -> tuple[Estimate, dict[int, str]]:
    """The cost of labels, and the features that will have one with the label where it is known."""
    likely: dict[int, str] = {}

    def questions() -> Iterator[Question]:
        for question in labelling.questions():
            answer = rounds.known(question)
            label = PLACEHOLDER if answer is None else labelling.detail(answer).label
            if label is not None:
                likely[question.feature] = label
            yield question

    return rounds.estimate(questions()), likely


def of_scores(rounds: Rounds, evidence: Evidence, labels: Mapping[int, str], judge: str) -> Estimate:
    """The cost of scoring these labels, and of the control."""
    features = sorted(labels)
    chosen = features[:: math.ceil(len(features) / SAMPLED) or 1]
    scoring = Scoring(evidence, {feature: labels[feature] for feature in chosen}, judge, controlled=False)
    factor = (len(features) + control_size(len(features))) / max(len(chosen), 1)
    return scaled(rounds.estimate(scoring.questions()), factor)
