"""The labels of many features: which are asked for, and what comes of each answer."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from neuroscope_jax.autointerp.answers import Description, validated
from neuroscope_jax.autointerp.evidence import Evidence, FeatureEvidence
from neuroscope_jax.autointerp.prompts import label_question
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.replies import by_the_model
from neuroscope_jax.features.label_details import LabelDetail
from neuroscope_jax.features.logits import TokenScores

FEWEST = 5  # of the strongest examples; a feature with fewer is not asked about


class Labelling:
    """Asks for each feature's label once; `found` fills with labels, and with the reasons why there are none."""

    def __init__(
        self,
        evidence: Evidence,
        features: Sequence[int],
        examples: int,
        model: str,
        logits: Mapping[int, TokenScores],
    ) -> None:
        self.found: dict[int, LabelDetail] = {}
        self.reached: bool | None = None  # whether the model gave any answer; None where nothing was asked
        self._evidence, self._features = evidence, sorted(features)
        self._examples, self._model, self._logits = examples, model, logits

    def questions(self) -> Iterator[Question]:
        """One for each feature that has enough examples; in rising order, the same each time."""
        for feature in self._features:
            evidence = self._evidence.of(feature)
            unasked = self._unasked(evidence)
            if unasked:
                self.found[feature] = unasked
            else:
                yield label_question(evidence, self._examples, self._logits.get(feature))

    def take(self, question: Question, answer: Answer) -> None:
        """Keep what an answer says."""
        self.reached = self.reached or by_the_model(answer.failure)
        self.found[question.feature] = self.detail(answer)

    def detail(self, answer: Answer) -> LabelDetail:
        """What an answer says: a label fit to be shown, or why it has none."""
        described = validated(answer.fields) if answer.fields is not None else str(answer.failure)
        if isinstance(described, Description):
            confidence, pattern = described.confidence, described.pattern
            found = LabelDetail(described.label, "labelled", confidence=confidence, pattern=pattern)
        else:
            found = LabelDetail(None, "failed", reason=described)
        return dataclasses.replace(found, model=self._model, date=answer.date, prompt_sha256=answer.key)

    def _unasked(self, evidence: FeatureEvidence) -> LabelDetail | None:
        """Why a feature is not asked about."""
        if evidence.count == 0:
            tokens = self._evidence.stats.tokens
            return LabelDetail(None, "dead", reason=f"never fired in {tokens:,} tokens")
        if len(evidence.top) < FEWEST:
            reason = f"has {len(evidence.top)} examples, at least {FEWEST} are needed"
            return LabelDetail(None, "thin", reason=reason)
        return None
