"""What a run came to, in a few lines."""

import collections
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from neuroscope_jax.autointerp.labelling import FEWEST
from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.quoting import message
from neuroscope_jax.autointerp.rounds import Rounds
from neuroscope_jax.autointerp.scoring import Scoring
from neuroscope_jax.autointerp.spending import Estimate, counted, kind_of
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.label_details import LOW, LabelDetail, LabelDetails

NAMED = 5  # features of a kind of failure


def labels(found: Mapping[int, LabelDetail], kept: int) -> Iterator[str]:
    """How many features got a label, and what became of the others, of which `kept` keep an earlier one."""
    count = collections.Counter[str](detail.status for detail in found.values())
    confidence = collections.Counter(d.confidence for d in found.values() if d.status == "labelled")
    sure = ", ".join(f"{confidence[name]:,} {name}" for name in ("high", "medium", "low"))
    yield f"labelled: {count['labelled']:,} of {counted(len(found), 'feature')}; confidence (labeler's own): {sure}"
    yield _unasked(count)
    yield f"failed: {count['failed']:,}" if count["failed"] else "failed: none"
    yield from _failures(found)
    if kept:
        yield f"kept: {counted(kept, 'earlier label')}, where the new one failed"


def by_hand(count: int) -> Iterator[str]:
    """How many labels a run left as a person wrote them."""
    if count:
        yield f"kept {counted(count, 'label')} changed by hand"


def scores(details: LabelDetails, scoring: Scoring, hint: bool) -> Iterator[str]:
    """How well labels did, beside what labels do on features that are not theirs.

    `hint` where --replace-flagged was not given but would take labels out of the file.
    """
    found = scoring.scores
    accuracies = [s.balanced_accuracy for s in found.values() if s.balanced_accuracy is not None]
    mean = f", mean balanced accuracy {statistics.fmean(accuracies):.2f}" if accuracies else ""
    too_few = f"{len(found) - len(accuracies):,} with too few texts to score"
    yield f"scored: {counted(len(accuracies), 'label')}{mean}; {too_few}"
    yield from _low(details, scoring, hint)
    if unanswered := sum(score.n_failed for score in found.values()):
        yield f"texts without an answer: {unanswered:,}"
    for kind, first in scoring.failures.items():
        yield f"  {kind}{_particulars(kind, first)}"
    yield f"control: {scoring.control}"


def _low(details: LabelDetails, scoring: Scoring, hint: bool) -> Iterator[str]:
    """How many labels scored low, and whether they are in the file still."""
    low = [feature for feature, score in scoring.scores.items() if score.low_confidence]
    replaced = [feature for feature in low if feature in details.features and details.features[feature].replaced]
    if replaced:
        was = "was" if len(replaced) == 1 else "were"
        yield f"{counted(len(replaced), 'label')} scored below {LOW:.2f} and {was} taken out of the file"
    stay = len(low) - len(replaced)
    if stay or not low:
        score, remain = ("scores", "it stays") if stay == 1 else ("score", "they stay")
        how = (
            (" (--replace-flagged takes it out)" if stay == 1 else " (--replace-flagged takes them out)")
            if hint
            else ""
        )
        yield f"{counted(stay, 'label')} {score} below {LOW:.2f}" + (f"; {remain} in the file{how}" if stay else "")


def spent(rounds: Rounds) -> Iterator[str]:
    """What was asked and paid for."""
    yield f"asked: {rounds.usage}"
    if rounds.passed:
        yield rounds.passed


def written(paths: Iterable[Path]) -> Iterator[str]:
    """The files of a run."""
    yield "written:"
    yield from map(str, paths)


def told(lines: Iterable[str], unanswered: str | None) -> str:
    """The lines as one text. Where all questions for labels, or scores, were `unanswered`: printed, and a UserError."""
    text = "\n".join(lines)
    if unanswered is None:
        return text
    print(text, flush=True)
    raise UserError(
        f"no question for {unanswered} got an answer of the model, the causes are above; earlier {unanswered} are "
        "kept. Run the same command again to ask anew"
    )


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
    return f"not asked about: {count['dead']:,} that never fired, {count['thin']:,} with fewer than {FEWEST} examples"


def _failures(found: Mapping[int, LabelDetail]) -> Iterator[str]:
    """By kind, the most frequent first."""
    kinds = collections.defaultdict(list)
    for feature, detail in sorted(found.items()):
        if detail.status == "failed":
            kinds[kind_of(str(detail.reason))].append(feature)
    for kind, features in sorted(kinds.items(), key=lambda item: -len(item[1])):
        more = ", …" if len(features) > NAMED else ""
        yield f"  {len(features):,} {kind}: {', '.join(map(str, features[:NAMED]))}{more}"
        if particulars := _particulars(kind, str(found[features[0]].reason)):
            yield f"    the first{particulars}"


def _particulars(kind: str, failure: str) -> str:
    """What a failure says beyond its kind, after a colon."""
    rest = message(failure)[len(kind) :].strip(" :")
    return f": {rest}" if rest else ""
