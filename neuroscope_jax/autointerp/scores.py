"""From a judge's answers to a label's score, and to the control: what labels score on features not theirs.

balanced accuracy = (tpr + tnr) / 2: 0.5 for whoever says yes to all, no to all, or tosses a coin, whatever the mix.
"""

import itertools
import math
import statistics
import zlib
from collections.abc import Iterable, Mapping

import numpy as np

from neuroscope_jax.autointerp.sequences import FEWEST, Sequence
from neuroscope_jax.corpus.hashing import hashed
from neuroscope_jax.features.label_details import Control, Score, WrongSequence

CONTROL, FEWEST_TRIED = 0.02, 20  # of the features, and at least so many, are also scored with another one's label


def scored(sequences: list[Sequence], answers: list[bool | None], judge: str) -> Score:
    """The score of a label from what `judge` answered of each sequence; unanswered ones (None) are only counted.

    "insufficient" where fewer than FEWEST of a kind were answered. The standard error takes the answers of each kind
    for draws of their own; of n of them, k right, p = (k + 1) / (n + 2) has the variance p (1 - p) / (n + 2) (Agresti
    and Caffo 2000), so that 50 of 50 are no certainty.
    """
    answered = [(s, answer) for s, answer in zip(sequences, answers, strict=True) if answer is not None]
    active = [answer for s, answer in answered if s.active]
    silent = [not answer for s, answer in answered if not s.active]
    enough = min(len(active), len(silent)) >= FEWEST
    tpr, tnr = (statistics.fmean(active), statistics.fmean(silent)) if enough else (None, None)
    return Score(
        status="scored" if enough else "insufficient",
        balanced_accuracy=None if tpr is None or tnr is None else (tpr + tnr) / 2,
        tpr=tpr,
        tnr=tnr,
        standard_error=None if tpr is None or tnr is None else _error(active, silent),
        n_active=len(active),
        n_silent=len(silent),
        n_hard=sum(s.hard for s, _ in answered),
        n_failed=len(sequences) - len(answered),
        judge=judge,
        wrong=[WrongSequence(s.text, s.active) for s, answer in answered if answer != s.active],
    )


def not_scored(sequences: list[Sequence], judge: str) -> Score:
    """The score of a label that there are too few sequences to ask about; the counts are of those there are."""
    active, hard = sum(s.active for s in sequences), sum(s.hard for s in sequences)
    silent = len(sequences) - active
    return Score("insufficient", None, None, None, None, active, silent, hard, 0, judge, [])


def control_size(labels: int) -> int:
    """On how many of so many features the label of another one is tried."""
    return min(labels, max(FEWEST_TRIED, math.ceil(CONTROL * labels)))


def control_pairs(labels: Mapping[int, str], run: str) -> dict[int, int]:
    """For `control_size` of these features another feature whose label is to be tried on it.

    The same for the same labels and run. None where all features have one and the same label.
    """
    features = sorted(labels)
    order = np.argsort(hashed(zlib.crc32(run.encode()), np.array(features, np.uint32)), kind="stable").tolist()
    shuffled = [features[i] for i in order]
    pairs = {}
    for i, feature in enumerate(shuffled[: control_size(len(features))]):
        others = itertools.chain(shuffled[i + 1 :], shuffled[:i])
        donor = next((other for other in others if labels[other].lower() != labels[feature].lower()), None)
        if donor is not None:
            pairs[feature] = donor
    return pairs


def control(scores: Iterable[Score]) -> Control:
    """The mean balanced accuracy of the control's scores that came about, their number and the mean's error."""
    found = [score.balanced_accuracy for score in scores if score.balanced_accuracy is not None]
    error = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else None
    return Control(statistics.fmean(found) if found else None, len(found), error)


def _error(*kinds: list[bool]) -> float:
    """Of the mean of two rates, each that of the answers of a kind."""
    rates = [((sum(right) + 1) / (len(right) + 2), len(right) + 2) for right in kinds]
    return math.sqrt(sum(p * (1 - p) / n for p, n in rates)) / 2
