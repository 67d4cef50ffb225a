"""New labels and what earlier runs left: labels of other features, and scores that still hold."""

import dataclasses
from collections.abc import Mapping

from neuroscope_jax.features.label_details import LabelDetail, LabelDetails


def merged(made: LabelDetails, before: LabelDetails | None, whole: bool) -> LabelDetails:
    """The labels just made; unless they are the whole, beside the earlier ones of other features.

    Where a new one failed the earlier label stays, and where a person changed one theirs does.
    """
    if before is None:
        return made
    made = dataclasses.replace(made, features=made.features | kept(made.features, before) | by_hand(before))
    others = {} if whole else before.features
    if made.run != before.run:  # their scores are of other texts
        control = None if whole else before.control
        return dataclasses.replace(made, features={**others, **made.features}, control=control)
    scored = {f: _with_earlier_score(detail, before.features.get(f)) for f, detail in made.features.items()}
    return dataclasses.replace(made, features={**others, **scored}, control=before.control)


def kept(made: Mapping[int, LabelDetail], before: LabelDetails | None) -> dict[int, LabelDetail]:
    """The earlier labels of features whose new one failed."""
    earlier = before.features if before else {}
    failed = [feature for feature, detail in made.items() if detail.status == "failed"]
    return {feature: earlier[feature] for feature in failed if feature in earlier and earlier[feature].label}


def by_hand(before: LabelDetails | None) -> dict[int, LabelDetail]:
    """The labels that a person wrote."""
    return {f: detail for f, detail in before.features.items() if detail.by_hand and detail.shown} if before else {}


def _with_earlier_score(detail: LabelDetail, earlier: LabelDetail | None) -> LabelDetail:
    """A label that came out as before keeps its score."""
    if earlier is None or detail.label is None or earlier.label != detail.label:
        return detail
    return dataclasses.replace(detail, score=earlier.score, replaced=earlier.replaced)
