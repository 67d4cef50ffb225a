"""Features as text for a terminal: what `labels show` prints."""

import os
import sys
from collections.abc import Iterator

from neuroscope_jax.features.label_details import LOW, LabelDetail, Score
from neuroscope_jax.pages.examples import Example, Examples
from neuroscope_jax.pages.known import Known, Measured

EXAMPLES = 3
MARGIN = 14  # columns of the words on the left
HIGHLIGHT = "\x1b[1;7m{}\x1b[0m"  # bold, colours swapped: seen on light and dark ground alike
MARKED = "<<{}>>"


def as_text(known: Known, features: list[int]) -> str:
    """Each feature with a heading and a few lines."""
    marked = HIGHLIGHT if colours() else MARKED
    measured, examples = known.measured, None
    if measured and measured.files.examples.exists():
        examples = Examples(measured.files.examples, measured.provenance)
    blocks = ["\n".join(_block(known, feature, examples, marked)) for feature in features]
    return "\n\n".join(blocks)


def colours() -> bool:
    """True where stdout is a terminal that may be sent colours, see no-color.org."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def for_stdout(text: str) -> str:
    """The text with "?" for what stdout's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def readable(text: str) -> str:
    """One line that no terminal obeys: newlines as ↵, other characters that are not printed by their numbers."""
    signs = {"\n": "↵", "\t": "⇥"}
    return "".join(c if c.isprintable() or c in "\u200c\u200d" else signs.get(c, f"[U+{ord(c):04X}]") for c in text)


def _block(known: Known, feature: int, examples: Examples | None, marked: str) -> Iterator[str]:
    detail, label = known.detail(feature), known.label(feature)
    yield f"{feature}  {readable(label or known.labels.text(feature))}"
    yield _line("source", _source(known, feature, detail))
    if label and detail and detail.confidence:
        yield _line("confidence", f"{detail.confidence} (labeler's own)")
    yield _line("score", _score(detail.score if detail else None))
    yield _line("firing rate", _rate(known.measured, feature))
    yield from _examples(feature, examples, marked)


def _line(name: str, value: str) -> str:
    return f"  {name:<{MARGIN}}{value}"


def _source(known: Known, feature: int, detail: LabelDetail | None) -> str:
    source = known.source_in_full(feature)
    if source is not None:
        return readable(f"{source}, {detail.date}" if detail and detail.date else source)
    if detail and detail.replaced:
        return f"none; {readable(dropped(detail))}"
    return f"none: {readable(detail.reason)}" if detail and detail.reason else "none"


def dropped(detail: LabelDetail) -> str:
    """What became of a label that was taken out of the labels file."""
    accuracy = detail.score.balanced_accuracy if detail.score else None
    why = "" if accuracy is None else f" (score {accuracy:.2f}, below {LOW:.2f})"
    return f"label dropped{why}: '{detail.label}'"


def _score(score: Score | None) -> str:
    if score is None:
        return "not scored"
    if score.balanced_accuracy is None or score.tpr is None or score.tnr is None:
        return f"too few texts to score: {score.n_active} where it fires, {score.n_silent} where it does not"
    low = ", low score" if score.low_confidence else ""
    error = "" if score.standard_error is None else f" ± {score.standard_error:.2f}"
    recognised = (
        f"{readable(score.judge)} recognised {100 * score.tpr:.0f} % of the texts where it fires and "
        f"{100 * score.tnr:.0f} % of those where it does not"
    )
    return f"{score.balanced_accuracy:.2f}{error}{low}; {recognised}"


def _rate(measured: Measured | None, feature: int) -> str:
    if measured is None:
        return "not known; `neuroscope_jax calibrate run` measures it"
    count, tokens = int(measured.stats.count[feature]), measured.stats.tokens
    often = f"{count / tokens:.3%}, {count:,} of {tokens:,} tokens"
    return (
        f"{often}, at most {measured.stats.max_activation[feature]:.4g}"
        if count
        else f"never fired in {tokens:,} tokens"
    )


def _examples(feature: int, examples: Examples | None, marked: str) -> Iterator[str]:
    if examples is None:
        yield _line("examples", "none here; `neuroscope_jax calibrate run` finds them")
        return
    for example in examples.of(feature)[:EXAMPLES]:
        yield f"  {example.activation:>{MARGIN - 2}.4g}  {_sentence(example, marked)}"


def _sentence(example: Example, marked: str) -> str:
    before, token, after = (readable(part) for part in (example.before, example.token, example.after))
    edges = "" if example.cut_before else "…", "" if example.cut_after else "…"
    return f"{edges[0]}{before}{marked.format(token)}{after}{edges[1]}"
