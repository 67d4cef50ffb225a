"""Evidence written by hand."""

import numpy as np

from neuroscope_jax.autointerp.evidence import FeatureEvidence, Firing, Shown


def shown(
    before: str,
    token: str,
    after: str,
    activation: float,
    quantile: float | None = None,
    cut: tuple[bool, bool] = (False, False),
) -> Shown:
    """An example as text; its ids do not matter."""
    return Shown(np.array([5]), 0, 0, 0, 0, activation, quantile, *cut, before, token, after)


def firing(ids: list[int], at: int, document: int, activation: float = 1.0) -> Firing:
    """An example as ids, from a document of its own."""
    return Firing(np.array(ids, np.int32), at, document, 0, at, activation, 0.5, at < 12, len(ids) - at < 13)


def as_shown(example: Firing) -> Shown:
    """The same, as something the labeller sees."""
    return Shown(**vars(example), before="", token="", after="")


def evidence(
    top: list[Shown], random: list[Shown] | None = None, held_out: list[Firing] | None = None
) -> FeatureEvidence:
    """Of feature 3."""
    return FeatureEvidence(3, 99, top, random or [], held_out or [])
