"""The scores of many labels, and of the control beside them: what is asked, and what comes of the answers."""

import dataclasses
from collections.abc import Iterator, Mapping

from neuroscope_jax.autointerp.detection import detection_questions, predictions
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.replies import by_the_model
from neuroscope_jax.autointerp.scores import control, control_pairs, not_scored, scored
from neuroscope_jax.autointerp.sequences import Drawer, Sequence, shortage
from neuroscope_jax.autointerp.spending import kind_of
from neuroscope_jax.features.label_details import Control, LabelDetails, Score


@dataclasses.dataclass
class _Open:
    """A label with questions that are not all answered."""

    sequences: list[Sequence]
    asked: int
    answers: list[Answer] = dataclasses.field(default_factory=list)


class Scoring:
    """Asks a judge about each label once; `scores` fills as the last answer about a label comes.

    Only labels with questions under way are held in memory.
    """

    def __init__(self, evidence: Evidence, labels: Mapping[int, str], judge: str, controlled: bool = True) -> None:
        self.scores: dict[int, Score] = {}
        self.reached: bool | None = None  # whether the model gave any answer; None where nothing was asked
        self.failures: dict[str, str] = {}  # the first of each kind
        self._controls: list[Score] = []
        self._evidence, self.labels, self._judge = evidence, labels, judge
        self._drawer = Drawer(evidence.pool, evidence.tokenizer, evidence.provenance.run)
        self._donors = control_pairs(labels, evidence.provenance.run) if controlled else {}
        self._open: dict[tuple[int, str], _Open] = {}

    @property
    def control(self) -> Control:
        """What labels scored on features that are not theirs."""
        return control(self._controls)

    def questions(self) -> Iterator[Question]:
        """Of each label in turn; of some features also about the label of another one."""
        for feature in sorted(self.labels):
            sequences = self._drawer.of(self._evidence.of(feature))
            if shortage(sequences):
                self.scores[feature] = not_scored(sequences, self._judge)
                continue
            yield from self._asked(feature, self.labels[feature], sequences, "score")
            if feature in self._donors:
                yield from self._asked(feature, self.labels[self._donors[feature]], sequences, "control")

    def take(self, question: Question, answer: Answer) -> None:
        """Keep an answer; with the last one of a label comes its score."""
        self.reached = self.reached or by_the_model(answer.failure)
        if answer.failure:
            self.failures.setdefault(kind_of(answer.failure), answer.failure)
        kind = question.part.partition(":")[0]
        place = question.feature, kind
        found = self._open[place]
        found.answers.append(answer)
        if len(found.answers) < found.asked:
            return
        del self._open[place]
        score = scored(found.sequences, predictions(found.sequences, found.answers), self._judge)
        if kind == "control":
            self._controls.append(score)
        else:
            self.scores[question.feature] = score

    def _asked(self, feature: int, label: str, sequences: list[Sequence], kind: str) -> list[Question]:
        questions = detection_questions(feature, label, sequences, kind)
        self._open[feature, kind] = _Open(sequences, len(questions))
        return questions


def with_scores(details: LabelDetails, scoring: Scoring, replace_flagged: bool, whole: bool) -> LabelDetails:
    """The details with the scores that were found; with `replace_flagged` low ones take labels made here out of sight.

    The control is that of the `whole` last scored, unless some of the features bring one of more labels.
    """
    features = dict(details.features)
    for feature, score in scoring.scores.items():
        detail = features.get(feature)
        if detail is None or detail.label != scoring.labels[feature]:
            continue  # somebody changed the label meanwhile
        earlier = detail.score
        if earlier and earlier.status == "scored" and score.status == "insufficient" and score.n_failed:
            score = earlier  # for want of answers there is no new one
        replaced = replace_flagged and score.low_confidence and not detail.by_hand
        features[feature] = dataclasses.replace(detail, score=score, replaced=replaced)
    control = scoring.control
    if control.n == 0 or (details.control and not whole and control.n < details.control.n):
        return dataclasses.replace(details, features=features)
    return dataclasses.replace(details, features=features, control=control)
