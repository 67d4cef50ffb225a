"""The sections of `python -m benchmarks`: each a list of programs, measured one after the other unless it is there."""

import contextlib
import dataclasses
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks import corpus as passing
from benchmarks import decode as decoding
from benchmarks import files
from benchmarks.corpus_pairs import corpus_pair
from benchmarks.corpus_results import CorpusRun
from benchmarks.peers import PEERS
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.results import Plan, Start
from benchmarks.shapes import SHAPES
from benchmarks.yardstick_results import FirstToken, Growth, Lookahead, Starts, Yardstick

logger = logging.getLogger("benchmarks")

Result = TypeVar("Result", Growth, Lookahead)


@dataclasses.dataclass(frozen=True)
class Orders:
    """What every section is told."""

    plan: Plan
    dtypes: list[str]  # the first in every section, all of them where programs are set side by side


Section = Callable[[Yardstick, Orders], Iterator[None]]


def decode(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """Live decoding with features: this project, and PyTorch with a hook."""
    return _serving(yardstick, orders, [name for dtype in orders.dtypes for name in (dtype, *_peers("torch", dtype))])


def peers(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """Every other program that decodes."""
    plain = [name for name in PEERS if name.startswith("llama-")]
    instrumented = [name for dtype in orders.dtypes for name in _peers("saklas", dtype)]
    return _serving(yardstick, orders, [*instrumented, *plain])


def _peers(program: str, dtype: str) -> list[str]:
    """That program's column in one dtype, none where it has none."""
    return [name for name in (f"{program}-{dtype}",) if name in PEERS]


def _serving(yardstick: Yardstick, orders: Orders, programs: list[str]) -> Iterator[None]:
    run = yardstick.decode
    for program in programs:
        if program not in run.ours | run.peers:
            with _noted(yardstick, f"decode: {program}"):
                decoding.add(run, orders.plan, program)
            yield


def first_token(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """Time to the first token by prompt length, and at the tenth turn of a chat."""
    dtype, shape = orders.dtypes[0], SHAPES[orders.plan.shape]
    plan = msgspec.structs.replace(_of(orders, dtype), prompts=shape.first_token)
    if dtype not in yardstick.first_token:
        with _noted(yardstick, f"first-token: {dtype}"):
            yardstick.first_token[dtype] = measure("ours_first_token", plan, FirstToken)
        yield
    for peer in set(_peers("torch", dtype)) - yardstick.first_token.keys():
        with _noted(yardstick, f"first-token: {peer}") as note:
            if reason := PEERS[peer].missing(plan.platform):
                yardstick.skipped[note] = reason
            else:
                measured = PEERS[peer].measured(msgspec.structs.replace(plan, tokens=2))
                yardstick.first_token[peer] = FirstToken(measured.first_token_seconds, None)
        yield


def growth(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """The decode step and the memory as the context fills."""
    return _once(yardstick, orders, "growth", yardstick.growth, Growth)


def lookahead(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """Several tokens to a step where the text can be foreseen."""
    return _once(yardstick, orders, "lookahead", yardstick.lookahead, Lookahead)


def _once(
    yardstick: Yardstick, orders: Orders, section: str, found: dict[str, Result], result: type[Result]
) -> Iterator[None]:
    """A section that is one program, in the first dtype."""
    dtype = orders.dtypes[0]
    if dtype not in found:
        with _noted(yardstick, f"{section}: {dtype}"):
            found[dtype] = measure(f"ours_{section}", _of(orders, dtype), result)
        yield


def start(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """From nothing to serving, cold and warm by turns."""
    dtype = orders.dtypes[0]
    starts = yardstick.start.setdefault(dtype, Starts([], [], []))
    for _ in range(orders.plan.repeats - len(starts.warm)):
        with _noted(yardstick, f"start: {dtype}"):
            _cold_and_warm(starts, _of(orders, dtype))
        yield


def _cold_and_warm(starts: Starts, plan: Plan) -> None:
    folder = Path(plan.folder)
    with tempfile.TemporaryDirectory() as cache:
        files.evict(folder)
        cold = measure("startup", plan, Start, NEUROSCOPE_CACHE=cache)
        files.read_seconds(folder)  # so that whatever the cold start has not read is in memory too
        warm = measure("startup", plan, Start, NEUROSCOPE_CACHE=cache)
    starts.cold.append(cold)
    starts.warm.append(warm)
    starts.read_seconds.append(files.read_seconds(folder))


def corpus(yardstick: Yardstick, orders: Orders) -> Iterator[None]:
    """The corpus pass beside others."""
    pair = corpus_pair(orders.plan.shape, None)
    run = yardstick.corpus = yardstick.corpus or CorpusRun(orders.plan.shape, len(pair.samples), {}, {}, {})
    programs = [name for name in passing.PROGRAMS if name.rpartition("-")[2] in orders.dtypes]
    with passing.plan_of(pair, orders.plan.platform) as plan:
        for program in passing.rounds(run, programs, orders.plan.repeats, orders.plan.platform):
            with _noted(yardstick, f"corpus: {program}"):
                passing.add(run, plan, program)
            yield


SECTIONS: dict[str, Section] = {
    "decode": decode,
    "peers": peers,
    "first-token": first_token,
    "growth": growth,
    "lookahead": lookahead,
    "start": start,
    "corpus": corpus,
}


def _of(orders: Orders, dtype: str) -> Plan:
    return decoding.plan_of(dtype, orders.plan)


@contextlib.contextmanager
def _noted(yardstick: Yardstick, program: str) -> Iterator[str]:
    """Go on where a program fails, with a note that it did. Earlier notes under that name, which it gives, are void."""
    yardstick.skipped.pop(program, None)
    yardstick.failed.pop(program, None)
    try:
        yield program
    except MeasurementFailed as error:
        logger.warning("%s: FAILED, %s", program, error)
        yardstick.failed[program] = str(error)
