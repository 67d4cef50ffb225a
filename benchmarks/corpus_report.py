"""A corpus run as Markdown: what was measured, and how it stands to what is required."""

import statistics
from collections.abc import Iterable, Iterator

from benchmarks.corpus_results import CorpusRun, OurPass, Passed, PeerPass, Report, overhead
from benchmarks.report import GIB, Requirement, not_measured, of_columns, spread, verdicts
from benchmarks.results import Spread
from benchmarks.shapes import GEMMA_2_2B, TINY
from neuroscope_jax.corpus.samples import LENGTH, STRIDE

COLLECTING = 0.10  # of the bare forward, on the 2B shape
TIMES_DELPHI = 1.5  # in the same dtype
SAME = 1e-3  # of delphi's firings, that rounding may move over their threshold in float32

MIB = 2**20
GROWTH = 32 * MIB  # of the peak, from half of the samples to all of them: an allocator is not exact


def markdown(report: Report) -> str:
    """The whole report."""
    machine = " · ".join(f"{name} {value}" for name, value in report.machine.items())
    parts = [f"# Corpus pass on {report.platform}", machine]
    for run in report.runs:
        parts += [f"## {run.pair}: {run.samples:,} samples of {LENGTH} tokens", figures(run)]
        if held := list(requirements(run)):
            parts.append(verdicts(held))
        parts += not_measured(run.skipped)
    return "\n\n".join(parts) + "\n"


def figures(run: CorpusRun) -> str:
    """One column a measured program, one row a figure; blank where a program has no such figure."""
    columns = {name: dict(_common_cells(measured)) | _our_cells(measured) for name, measured in run.ours.items()}
    columns |= {name: dict(_common_cells(measured)) for name, measured in run.peers.items()}
    return of_columns(columns)


def _common_cells(measured: list[OurPass] | list[PeerPass]) -> Iterator[tuple[str, str]]:
    yield "tokens/s of the pass, median (range)", _spread(one.whole.tokens_per_second for one in measured)
    yield "tokens for a second of one core's time", _spread(one.whole.tokens_per_cpu_second for one in measured)
    yield "peak memory with half of the samples", _peak(one.half for one in measured)
    yield "with all of them", _peak(one.whole for one in measured)
    whole = measured[0].whole
    if isinstance(measured[0], PeerPass) and measured[0].features is not None:
        yield "features collected, where not all", f"{measured[0].features}, {whole.firings / whole.tokens:.2f} a token"
        return
    yield "features that fire at a token (L0)", f"{whole.firings / (whole.tokens * STRIDE / LENGTH):.2f}"


def _our_cells(measured: list[OurPass]) -> dict[str, str]:
    tokens, cost = measured[0].rows * LENGTH, overhead(measured)
    return {
        "tokens/s of the bare truncated forward": _spread(tokens / t.seconds for one in measured for t in one.bare),
        "tokens/s of the step that collects": _spread(tokens / t.seconds for one in measured for t in one.full),
        "cost of collecting": f"{cost.seconds:+.1%} ({cost.cpu_seconds:+.1%} of the cores' time)",
        "samples in a batch": f"{measured[0].rows}",
        "state on the device": f"{measured[0].state_bytes / MIB:.0f} MiB",
    }


def _spread(values: Iterable[float]) -> str:
    return spread(Spread.of(list(values)), form=",.1f")


def _peak(passes: Iterable[Passed]) -> str:
    return f"{max(one.peak_bytes for one in passes) / GIB:.2f} GiB"


def requirements(run: CorpusRun) -> Iterator[Requirement]:
    """Every requirement that this run has the figures for. None is made of the tiny shape, whose proportions differ."""
    if run.pair == TINY.name:
        return
    for dtype, measured in run.ours.items():
        for what, found, holds in _own_requirements(run.pair, measured):
            yield f"{dtype}: {what}", found, holds
        if peer := run.peers.get(f"delphi-{dtype}"):
            times, by_cpu = (mine / its for mine, its in zip(_speeds(measured), _speeds(peer), strict=True))
            found = f"{times:.2f} times; {by_cpu:.2f} by the cores' time"
            yield f"{dtype}: at least {TIMES_DELPHI} times delphi", found, times >= TIMES_DELPHI
    if (ours := run.ours.get("float32")) and (peer := run.peers.get("delphi-float32")):
        off = abs(ours[0].whole.firings / peer[0].whole.firings - 1)
        yield f"float32: delphi's firings, to {SAME:.1%}", f"off by {off:.4%}", off <= SAME


def _own_requirements(pair: str, measured: list[OurPass]) -> Iterator[Requirement]:
    if pair == GEMMA_2_2B.name:
        cost = overhead(measured)
        found = f"{cost.seconds:+.1%}; {cost.cpu_seconds:+.1%} of the cores' time"
        yield f"collecting costs at most {COLLECTING:.0%}", found, cost.seconds <= COLLECTING
    growth = statistics.median(one.whole.peak_bytes - one.half.peak_bytes for one in measured)
    yield "twice the samples take no more memory", f"{growth / MIB:+.0f} MiB", growth <= GROWTH


def _speeds(measured: list[OurPass] | list[PeerPass]) -> tuple[float, float]:
    """Tokens a second, and a second of one core's time."""
    passes = [one.whole for one in measured]
    return (
        statistics.median(one.tokens_per_second for one in passes),
        statistics.median(one.tokens_per_cpu_second for one in passes),
    )
