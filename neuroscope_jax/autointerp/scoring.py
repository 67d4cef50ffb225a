"""The scores of many labels, and of the control beside them: what is asked, and what comes of the answers."""

import dataclasses
from collections.abc import Iterator, Mapping

from neuroscope_jax.autointerp.detection import detection_questions, predictions
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.scores import control, control_pairs, not_scored, scored
from neuroscope_jax.autointerp.sequences import Drawer, Sequence, shortage
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
        self._controls: list[Score] = []
        self._evidence, self._labels, self._judge = evidence, labels, judge
        self._drawer = Drawer(evidence.pool, evidence.tokenizer, evidence.provenance.run)
        self._donors = control_pairs(labels, evidence.provenance.run) if controlled else {}
        self._open: dict[tuple[int, str], _Open] = {}

    @property
    def control(self) -> Control:
        """What labels scored on features that are not theirs."""
        return control(self._controls)

    def questions(self) -> Iterator[Question]:
        """Of each label in turn; of some features also about the label of another one."""
        for feature in sorted(self._labels):
            sequences = self._drawer.of(self._evidence.of(feature))
            if shortage(sequences):
                self.scores[feature] = not_scored(sequences, self._judge)
                continue
            yield from self._asked(feature, self._labels[feature], sequences, "score")
            if feature in self._donors:
                yield from self._asked(feature, self._labels[self._donors[feature]], sequences, "control")

    def take(self, question: Question, answer: Answer) -> None:
        """Keep an answer; with the last one of a label comes its score."""
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


def with_scores(details: LabelDetails, scoring: Scoring, replace_flagged: bool) -> LabelDetails:
    """The details with the scores that were found; with `replace_flagged` low ones take their labels out of sight."""
    features = dict(details.features)
    for feature, score in scoring.scores.items():
        replaced = replace_flagged and score.low_confidence
        features[feature] = dataclasses.replace(features[feature], score=score, replaced=replaced)
    control = scoring.control if scoring.control.n else details.control
    return dataclasses.replace(details, features=features, control=control)
