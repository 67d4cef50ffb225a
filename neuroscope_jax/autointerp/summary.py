"""What a run came to, in a few lines."""

import collections
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.scoring import Scoring
from neuroscope_jax.autointerp.spending import Estimate, Usage
from neuroscope_jax.features.label_details import LOW, LabelDetail, LabelDetails, details_path

NAMED = 5  # features of a kind of failure


def labels(found: Mapping[int, LabelDetail]) -> Iterator[str]:
    """How many features got a label, and what became of the others."""
    count = collections.Counter[str](detail.status for detail in found.values())
    confidence = collections.Counter(d.confidence for d in found.values() if d.status == "labelled")
    sure = ", ".join(f"{confidence[name]:,} {name}" for name in ("high", "medium", "low"))
    yield f"labelled: {count['labelled']:,} of {len(found):,} features ({sure} confidence)"
    yield _unasked(count)
    yield f"failed: {count['failed']:,}"
    yield from _failures(found)


def scores(details: LabelDetails, scoring: Scoring) -> Iterator[str]:
    """How well labels did, beside what labels do on features that are not theirs."""
    found = scoring.scores
    accuracies = [s.balanced_accuracy for s in found.values() if s.balanced_accuracy is not None]
    mean = f", mean balanced accuracy {statistics.fmean(accuracies):.2f}" if accuracies else ""
    yield f"scored: {len(accuracies):,} labels{mean}; {len(found) - len(accuracies):,} with too few sequences"
    low = sum(score.low_confidence for score in found.values())
    replaced = sum(details.features[feature].replaced for feature in found)
    yield f"low confidence: {low:,} score below {LOW:.2f}, {replaced:,} of them replaced"
    if unanswered := sum(score.n_failed for score in found.values()):
        yield f"sequences without an answer: {unanswered:,}"
    control = scoring.control
    if control.balanced_accuracy is None:
        yield "control: none, for want of two labels and enough sequences"
    else:
        many = "1 label of another feature" if control.n == 1 else f"{control.n:,} labels of other features"
        yield f"control: balanced accuracy {control.balanced_accuracy:.2f}, {many}"


def spent(usage: Usage) -> str:
    """What was asked and paid for."""
    return f"asked: {usage}"


def written(path: Path) -> Iterator[str]:
    """The files of a run."""
    yield "written:"
    yield str(path)
    yield str(details_path(path))


def dry_run(cost: Estimate, first: Question | None, unasked: Mapping[int, LabelDetail] | None = None) -> str:
    """What a run would cost, and what its first question is."""
    lines = ["nothing was sent; a run would ask", str(cost)]
    if unasked is not None:
        count = collections.Counter[str](detail.status for detail in unasked.values())
        lines.append(_unasked(count))
    if first is not None:
        lines += ["", f"the first question, about feature {first.feature}:", "", first.system, "", first.prompt]
    return "\n".join(lines)


def _unasked(count: Mapping[str, int]) -> str:
    return f"not asked about: {count['dead']:,} dead, {count['thin']:,} thin"


def _failures(found: Mapping[int, LabelDetail]) -> Iterator[str]:
    """By kind, the most frequent first."""
    kinds = collections.defaultdict(list)
    for feature, detail in sorted(found.items()):
        if detail.status == "failed":
            kinds[str(detail.reason).partition(":")[0].partition(" (")[0]].append(feature)
    for kind, features in sorted(kinds.items(), key=lambda item: -len(item[1])):
        more = ", …" if len(features) > NAMED else ""
        yield f"  {len(features):,} {kind}: {', '.join(map(str, features[:NAMED]))}{more}"
