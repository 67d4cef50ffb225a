"""All that `python -m benchmarks` measured as Markdown, section by section."""

from collections.abc import Iterator

from benchmarks import corpus_report
from benchmarks.report import GIB, figures, heading, not_measured, of_columns, spread, table
from benchmarks.results import Spread, Start
from benchmarks.shapes import GEMMA_2_2B
from benchmarks.yardstick_requirements import REQUIREMENTS, Figures
from benchmarks.yardstick_results import Chat, FirstToken, Growth, Lookahead, Starts, Yardstick
from neuroscope_jax.corpus.samples import LENGTH


def markdown(yardstick: Yardstick) -> str:
    """The whole report; figures are the median of the repeats, with their range."""
    parts = [*heading(yardstick.decode), *_sections(yardstick)]
    # What is required is required of this shape; a smaller one has other proportions.
    if yardstick.decode.shape == GEMMA_2_2B.name:
        parts += ["## What is required", *_verdicts(yardstick)]
    return "\n\n".join([*parts, *_skipped(yardstick)]) + "\n"


def _sections(yardstick: Yardstick) -> Iterator[str]:
    run = yardstick.decode
    if run.ours or run.peers:
        yield "## Decoding"
        yield figures(run)
    if yardstick.first_token:
        yield "## First token"
        yield of_columns({name: dict(_first_token_cells(found)) for name, found in yardstick.first_token.items()})
    if yardstick.growth:
        yield "## As the context fills"
        yield of_columns({name: dict(_growth_cells(found)) for name, found in yardstick.growth.items()})
    if yardstick.lookahead:
        yield "## Lookahead"
        yield of_columns({name: dict(_lookahead_cells(found)) for name, found in yardstick.lookahead.items()})
    if starts := {name: dict(_start_cells(found)) for name, found in yardstick.start.items() if found.warm}:
        yield "## Start"
        yield of_columns(starts)
    if (corpus := yardstick.corpus) and (corpus.ours or corpus.peers):
        yield f"## Corpus pass: {corpus.samples:,} samples of {LENGTH} tokens"
        yield corpus_report.figures(corpus)


def _first_token_cells(found: FirstToken) -> Iterator[tuple[str, str]]:
    for length, seconds in found.seconds.items():
        yield f"prompt of {int(length):,}", f"{spread(seconds, form='.3f')} s"
    if found.chat is not None:
        yield from _chat_cells(found.chat)
    if (lag := found.lag) is not None:
        what = f"event loop late while a prompt of {lag.prompt_tokens:,} is read: median / 99 % / most of {lag.wakes:,}"
        yield what, " / ".join(f"{1e3 * seconds:.1f}" for seconds in (lag.median, lag.percentile_99, lag.most)) + " ms"


def _chat_cells(chat: Chat) -> Iterator[tuple[str, str]]:
    yield f"tenth turn of a chat: {chat.new_tokens} new of {chat.prompt_tokens}", f"{spread(chat.turn_seconds)} s"
    yield f"a fresh prompt of {chat.new_tokens}", f"{spread(chat.fresh_seconds)} s"
    yield "tenth turn over fresh prompt", spread(chat.ratio)


def _growth_cells(found: Growth) -> Iterator[tuple[str, str]]:
    for position, seconds in found.step_seconds.items():
        yield f"step at {int(position):,} of {found.context:,}", f"{spread(seconds, 1e3, '.1f')} ms"
    short = f"{found.common_position} of {found.short_context}"
    yield f"step at {short}", f"{spread(found.short_seconds, 1e3, '.1f')} ms"
    yield f"step at {found.common_position} of {found.context:,} over {short}", spread(found.ratio)
    for position, peak in found.peak_bytes.items():
        yield f"peak memory at {int(position):,}", f"{spread(peak, 1 / GIB)} GiB"


def _lookahead_cells(found: Lookahead) -> Iterator[tuple[str, str]]:
    yield "a text that can be foreseen, without", f"{spread(found.plain)} tokens/s"
    yield "the same with lookahead", f"{spread(found.foreseen)} tokens/s"
    yield "gain", f"{spread(found.gain)} times"
    yield "where nothing can be foreseen", f"{spread(found.elsewhere)} times"


def _start_cells(found: Starts) -> Iterator[tuple[str, str]]:
    yield "reading the files once, from memory", f"{spread(Spread.of(found.read_seconds))} s"
    for name, starts in (("cold", found.cold), ("warm", found.warm)):
        yield f"{name}: process to serving", _seconds([start.ready_seconds for start in starts])
        yield f"{name}: loading", _seconds([start.load_seconds for start in starts])
        yield f"{name}: from loaded to serving", _seconds([start.start_seconds for start in starts])
        yield f"{name}: compiling", _compiling(starts)


def _seconds(values: list[float]) -> str:
    return f"{spread(Spread.of(values))} s"


def _compiling(starts: list[Start]) -> str:
    last = starts[-1]
    return f"{_seconds([start.compile_seconds for start in starts])}, {last.compiled} programs, {last.reused} kept ones"


def _verdicts(yardstick: Yardstick) -> Iterator[str]:
    """What is required, what was found, and loudly where it does not hold; then what this run has no figures for."""
    decided = [(what, found) for what, find in REQUIREMENTS if (found := find(Figures(yardstick))) is not None]
    rows = [(what, found, "yes" if holds else "**NO**") for what, (found, holds) in decided]
    yield table(("required", "found", "holds"), rows)
    known = {what for what, _ in decided}
    if absent := [what for what, _ in REQUIREMENTS if what not in known]:
        yield "Not decided by this run: " + "; ".join(absent) + "."


def _skipped(yardstick: Yardstick) -> Iterator[str]:
    yield from not_measured(yardstick.decode.skipped)
    if yardstick.corpus:
        yield from not_measured(yardstick.corpus.skipped)
    yield from not_measured(yardstick.skipped | yardstick.failed)
