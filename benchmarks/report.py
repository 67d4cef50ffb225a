"""A run as Markdown: what was measured, and how it stands to what is required."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmarks.results import Ours, Peer, Run, Spread, Start
from benchmarks.shapes import GEMMA_2_2B

TIMES_TORCH = 2.2  # float32 decode, against PyTorch float32 in the same run
OVERHEAD = 0.03  # of the tap
GIB = 2**30
PEAK = {"float32": 16 * GIB, "bfloat16": 9 * GIB, "int8": 9 * GIB, "int4": 9 * GIB}  # on CPU

Requirement = tuple[str, str, bool]  # what is required, what was found, whether it holds


def markdown(run: Run) -> str:
    """The whole report."""
    # What is required is required of this shape; a smaller one has other proportions.
    held = [verdicts(requirements(run))] if run.shape == GEMMA_2_2B.name else []
    return "\n\n".join([*heading(run), figures(run), *held, *not_measured(run.skipped)]) + "\n"


def heading(run: Run) -> Iterator[str]:
    """What was measured on what, and how fast its memory is read."""
    yield f"# {run.shape} on {run.bandwidth.device}"
    yield " · ".join(f"{name} {value}" for name, value in run.machine.items())
    forms = ", ".join(f"{name} {spread(speed, 1e-9, '.1f')}" for name, speed in run.bandwidth.forms.items())
    yield f"Memory is read at {run.bandwidth.best / 1e9:.1f} GB/s at best ({forms})."


def figures(run: Run) -> str:
    """One column a measured program, one row a figure; blank where a program has no such figure."""
    columns = {name: _our_cells(measured) for name, measured in run.ours.items()}
    columns |= {name: dict(_common_cells(measured)) for name, measured in run.peers.items()}
    if reference := run.peers.get("torch-float32"):
        answers = {name: ours.ids for name, ours in run.ours.items()}
        answers |= {name: peer.ids for name, peer in run.peers.items()}
        for name, ids in answers.items():
            columns[name]["greedy tokens before one differs from torch-float32"] = _agreement(ids, reference.ids)
    return of_columns(columns)


def of_columns(columns: Mapping[str, Mapping[str, str]]) -> str:
    """A table of each program's figures by their labels."""
    labels = dict.fromkeys(label for cells in columns.values() for label in cells)
    rows = [(label, *(cells.get(label, "") for cells in columns.values())) for label in labels]
    return table(("", *columns), rows)


def _common_cells(measured: Ours | Peer) -> Iterator[tuple[str, str]]:
    with_features = isinstance(measured, Ours) or measured.features
    yield f"tokens/s with{'' if with_features else 'out'} features (range)", spread(measured.tokens_per_second)
    for length, seconds in measured.first_token_seconds.items():
        yield f"first token, prompt of {length}", f"{spread(seconds)} s"
    yield "load", f"{measured.start.load_seconds if isinstance(measured, Ours) else measured.load_seconds:.1f} s"
    yield "peak memory", f"{measured.peak_bytes / GIB:.2f} GiB"


def _our_cells(measured: Ours) -> dict[str, str]:
    step, read = measured.step, measured.model_bytes / measured.step.bare_seconds.median
    return dict(_common_cells(measured)) | {
        "load": _starts(measured, lambda start: f"{start.load_seconds:.1f} s"),
        "memory read between answers": f"{spread(measured.read_speed, 1e-9, '.1f')} GB/s",
        "share of the read limit, with features": f"{spread(measured.share, 100, '.0f')} %",
        "step with tap": f"{spread(step.tapped_seconds, 1e3, '.1f')} ms",
        "step without": f"{spread(step.bare_seconds, 1e3, '.1f')} ms, {1 / step.bare_seconds.median:.2f} tokens/s",
        "cost of the tap": f"{step.overhead.median:+.1%} (its bytes: {measured.sae_bytes / measured.model_bytes:+.1%})",
        "weights read by the step without": f"{read / 1e9:.1f} GB/s",
        "temporaries of the step": f"{step.temporary_bytes / 1e6:.1f} MB",
        "from loaded to serving": _starts(measured, lambda start: f"{start.start_seconds:.1f} s"),
        "compiling": _starts(measured, _compiling),
        "compiled anew by other sampling": f"{measured.recompiled} programs",
        "SAE features active at a token": f"{measured.average_l0:.0f}",
    }


def spread(values: Spread, times: float = 1, form: str = ".2f") -> str:
    """Median and range in a unit of so many times the stored one."""
    return f"{values.median * times:{form}} ({values.least * times:{form}} to {values.most * times:{form}})"


def _agreement(ids: list[int], reference: list[int]) -> str:
    same = next((i for i, (mine, its) in enumerate(zip(ids, reference, strict=False)) if mine != its), len(reference))
    return f"{same} of {len(reference)}"


def _starts(measured: Ours, cell: Callable[[Start], str]) -> str:
    """A figure of the first start, and of the second one where there was one."""
    second = f"; second start {cell(measured.second_start)}" if measured.second_start else ""
    return cell(measured.start) + second


def _compiling(start: Start) -> str:
    return f"{start.compile_seconds:.1f} s, {start.compiled} programs and {start.reused} from the cache"


def verdicts(requirements: Iterable[Requirement]) -> str:
    """What is required, what was found, and loudly where it does not hold."""
    rows = [(what, found, "yes" if holds else "**NO**") for what, found, holds in requirements]
    return table(("required", "found", "holds"), rows)


def requirements(run: Run) -> Iterator[Requirement]:
    """Every requirement that this run has the figures for."""
    ours, peer = run.ours.get("float32"), run.peers.get("torch-float32")
    if ours and peer:
        times = ours.tokens_per_second.median / peer.tokens_per_second.median
        yield f"float32 at least {TIMES_TORCH} times PyTorch float32", f"{times:.2f} times", times >= TIMES_TORCH
    for name, measured in run.ours.items():
        for what, found, holds in _own_requirements(name, measured, run.platform):
            yield f"{name}: {what}", found, holds


def _own_requirements(dtype: str, measured: Ours, platform: str) -> Iterator[Requirement]:
    step, second = measured.step, measured.second_start
    cost = step.overhead.median
    yield f"the tap costs at most {OVERHEAD:.0%}", f"{cost:+.1%}", cost <= OVERHEAD
    marks = ", ".join(step.bare_marks) or f"none ({len(step.tapped_marks)} with tap)"
    yield "no SAE in the program without tap", marks, bool(step.tapped_marks) and not step.bare_marks
    yield "other sampling compiles nothing", f"{measured.recompiled} programs", measured.recompiled == 0
    if second is not None:
        reuse = f"{second.compiled} compiled, {second.reused} reused"
        yield "a second start reuses the compile cache", reuse, second.reused > 0 and second.compiled == 0
    if platform == "cpu":
        limit, peak = PEAK[dtype], measured.peak_bytes
        yield f"at most {limit // GIB} GiB", f"{peak / GIB:.2f} GiB", peak <= limit


def not_measured(skipped: dict[str, str]) -> Iterator[str]:
    """A line for each program that was asked for and not measured."""
    for name, reason in skipped.items():
        yield f"**{name} was NOT measured:** {reason}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
