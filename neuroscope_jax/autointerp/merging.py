"""New labels and what earlier runs left: labels of other features, and scores that still hold."""

import dataclasses

from neuroscope_jax.features.label_details import LabelDetail, LabelDetails


def merged(made: LabelDetails, before: LabelDetails | None, whole: bool) -> LabelDetails:
    """The labels just made; unless they are the whole, beside the earlier ones of other features."""
    if before is None:
        return made
    others = {} if whole else before.features
    if made.run != before.run:  # their scores are of other texts
        return dataclasses.replace(made, features={**others, **made.features})
    scored = {f: _with_earlier_score(detail, before.features.get(f)) for f, detail in made.features.items()}
    return dataclasses.replace(made, features={**others, **scored}, control=before.control)


def _with_earlier_score(detail: LabelDetail, earlier: LabelDetail | None) -> LabelDetail:
    """A label that came out as before keeps its score."""
    if earlier is None or detail.label is None or earlier.label != detail.label:
        return detail
    return dataclasses.replace(detail, score=earlier.score, replaced=earlier.replaced)
