"""`python -m benchmarks.decode`: speed and memory of serving, beside PyTorch with a hook, on random weights.

Prints Markdown; --json FILE also keeps every figure. The checkpoint is made once, in the cache folder.
"""

import argparse
import importlib.util
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks import machine
from benchmarks.checkpoint import checkpoint
from benchmarks.options import at_least, some_of
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.report import markdown
from benchmarks.results import Bandwidth, Ours, Peer, Plan, Run, Start
from benchmarks.shapes import GEMMA_2_2B, SHAPES
from neuroscope_jax import platforms

logger = logging.getLogger("benchmarks")

PROGRAMS = ("float32", "bfloat16", "int8", "int4", "torch-float32", "torch-bfloat16")
QUANTIZED = ("int8", "int4")  # under float32 on CPUs, under bfloat16 elsewhere, as serving does
INSTALL = "torch and transformers are not installed; pip install -e '.[bench]'"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the report, write the JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = _parser().parse_args(arguments)
    platforms.choose("cpu")  # only the processes that measure may hold an accelerator
    logger.info("weights of %s: made in the cache folder unless they are there", options.shape)
    folder = str(checkpoint(SHAPES[options.shape]))
    plan = Plan(folder, options.shape, "float32", options.platform, options.tokens, options.repeats)
    try:
        for run in run_all(plan, options.only):
            if options.json is not None:
                options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=2))
    except MeasurementFailed as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(markdown(run))


def run_all(plan: Plan, programs: list[str]) -> Iterator[Run]:
    """One process after the other: the probe, then each program. Gives what there is so far after each."""
    logger.info("probe: reading memory")
    bandwidth = measure("bandwidth", plan, Bandwidth)
    run = Run(machine.describe(), plan.shape, plan.platform, bandwidth, {}, {}, {})
    for program in programs:
        mine = _plan_of(program, plan)
        if not program.startswith("torch-"):
            run.ours[program] = _measure_ours(program, mine)
        elif reason := _no_peer(plan):
            logger.warning("%s: SKIPPED, %s", program, reason)
            run.skipped[program] = reason
        else:
            logger.info("%s: measuring", program)
            run.peers[program] = measure("torch_peer", mine, Peer)
        yield run


def _plan_of(program: str, plan: Plan) -> Plan:
    if program in QUANTIZED:
        dtype = "float32" if plan.platform == "cpu" else "bfloat16"
        return msgspec.structs.replace(plan, dtype=dtype, quantization=program)
    return msgspec.structs.replace(plan, dtype=program.removeprefix("torch-"))


def _measure_ours(program: str, plan: Plan) -> Ours:
    """Everything with empty caches, then a second start with what that left: compiled code, quantised weights."""
    with tempfile.TemporaryDirectory() as cache:
        logger.info("%s: measuring", program)
        ours = measure("ours", plan, Ours, NEUROSCOPE_CACHE=cache)
        logger.info("%s: starting once more", program)
        second = measure("startup", plan, Start, NEUROSCOPE_CACHE=cache)
    return msgspec.structs.replace(ours, second_start=second)


def _no_peer(plan: Plan) -> str:
    """Why PyTorch cannot be measured here; empty where it can."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        return INSTALL
    return "the peer runs on cpu and gpu only" if plan.platform == "tpu" else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=SHAPES, default=GEMMA_2_2B.name)
    parser.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu")
    parser.add_argument("--tokens", type=at_least(2), default=32, help="tokens in each answer")
    parser.add_argument("--repeats", type=at_least(1), default=3, help="answers timed")
    parser.add_argument("--only", type=some_of(PROGRAMS), default=list(PROGRAMS), help="some of " + ",".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, for a program to read")
    return parser


if __name__ == "__main__":
    main()
