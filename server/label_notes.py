"""What GET /v1/features/labels?detail=1 says of each label: where it comes from and how well it scored."""

import msgspec

from neuroscope_jax.features.label_details import LabelDetail, Score
from server.state import Labels


class ScoreNote(msgspec.Struct):
    """A detection score; the figures are null where there were too few sequences."""

    status: str  # scored or insufficient
    balanced_accuracy: float | None
    tpr: float | None
    tnr: float | None
    standard_error: float | None
    low_confidence: bool
    n_active: int
    n_silent: int
    n_hard: int
    n_failed: int
    judge: str


class LabelNote(msgspec.Struct, omit_defaults=True):
    """One feature; what is not known is left out."""

    source: str  # autointerp, neuronpedia, bundled or numeric
    status: str | None = None  # labelled, dead, thin or failed
    reason: str | None = None  # why there is no label
    confidence: str | None = None  # high, medium or low
    pattern: str | None = None
    model: str | None = None
    type_name: str | None = None
    date: str | None = None
    alternatives: int = 0
    replaced: bool = False  # had a label that scored too low to be shown
    score: ScoreNote | None = None


def of(labels: Labels) -> dict[str, LabelNote]:
    """A note under the index of every feature that has a label, or of which it is known why not."""
    features = ((index, labels.source_of(index), labels.detail_of(index)) for index in range(labels.width))
    return {str(index): _note(source, detail) for index, source, detail in features if detail or source != "numeric"}


def _note(source: str, detail: LabelDetail | None) -> LabelNote:
    if detail is None:
        return LabelNote(source)
    return LabelNote(
        source=source,
        status=detail.status,
        reason=detail.reason,
        confidence=detail.confidence,
        pattern=detail.pattern,
        model=detail.model,
        type_name=detail.type_name,
        date=detail.date,
        alternatives=detail.alternatives,
        replaced=detail.replaced,
        score=_score(detail.score) if detail.score else None,
    )


def _score(score: Score) -> ScoreNote:
    names = (name for name in ScoreNote.__struct_fields__ if name != "low_confidence")
    return ScoreNote(low_confidence=score.low_confidence, **{name: getattr(score, name) for name in names})
