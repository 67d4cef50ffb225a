"""`python -m benchmarks.decode`: speed and memory of serving, beside PyTorch with a hook and others, on random weights.

Prints Markdown; --json FILE also keeps every figure. The checkpoint is made once, in the cache folder.
"""

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks import machine
from benchmarks.checkpoint import checkpoint
from benchmarks.options import at_least, some_of
from benchmarks.peers import PEERS
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.report import markdown
from benchmarks.results import Bandwidth, Ours, Plan, Run, Start
from benchmarks.shapes import GEMMA_2_2B, SHAPES
from neuroscope_jax import platforms

logger = logging.getLogger("benchmarks")

QUANTIZED = ("int8", "int4")  # under float32 on CPUs, under bfloat16 elsewhere, as serving does
OURS = ("float32", "bfloat16", *QUANTIZED)
PROGRAMS = (*OURS, *PEERS)
USUAL = ("float32", "bfloat16", "torch-float32", "torch-bfloat16")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the report, write the JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = _parser().parse_args(arguments)
    platforms.choose("cpu")  # only the processes that measure may hold an accelerator
    logger.info("weights of %s: made in the cache folder unless they are there", options.shape)
    folder = str(checkpoint(SHAPES[options.shape]))
    plan = Plan(folder, options.shape, "float32", options.platform, options.tokens, options.repeats)
    try:
        run = begin(plan)
        for program in options.only:
            add(run, plan, program)
            if options.json is not None:
                options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=2))
    except MeasurementFailed as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(markdown(run))


def begin(plan: Plan) -> Run:
    """A run with nothing but the probe of the memory. Raises MeasurementFailed."""
    logger.info("probe: reading memory")
    bandwidth = measure("bandwidth", plan, Bandwidth)
    return Run(machine.describe(), plan.shape, plan.platform, bandwidth, {}, {}, {})


def add(run: Run, plan: Plan, program: str) -> None:
    """Measure one of PROGRAMS, or note why it cannot be. Raises MeasurementFailed."""
    run.skipped.pop(program, None)
    if program in OURS:
        run.ours[program] = _measure_ours(program, plan_of(program, plan))
    elif reason := PEERS[program].missing(plan.platform):
        logger.warning("%s: SKIPPED, %s", program, reason)
        run.skipped[program] = reason
    else:
        logger.info("%s: measuring", program)
        run.peers[program] = PEERS[program].measured(plan)


def plan_of(program: str, plan: Plan) -> Plan:
    """The orders of one of OURS."""
    if program in QUANTIZED:
        dtype = "float32" if plan.platform == "cpu" else "bfloat16"
        return msgspec.structs.replace(plan, dtype=dtype, quantization=program)
    return msgspec.structs.replace(plan, dtype=program)


def _measure_ours(program: str, plan: Plan) -> Ours:
    """Everything with empty caches, then a second start with what that left: compiled code, quantised weights."""
    with tempfile.TemporaryDirectory() as cache:
        logger.info("%s: measuring", program)
        ours = measure("ours", plan, Ours, NEUROSCOPE_CACHE=cache)
        logger.info("%s: starting once more", program)
        second = measure("startup", plan, Start, NEUROSCOPE_CACHE=cache)
    return msgspec.structs.replace(ours, second_start=second)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", choices=SHAPES, default=GEMMA_2_2B.name)
    parser.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu")
    parser.add_argument("--tokens", type=at_least(2), default=32, help="tokens in each answer")
    parser.add_argument("--repeats", type=at_least(1), default=3, help="answers timed")
    parser.add_argument("--only", type=some_of(PROGRAMS), default=list(USUAL), help="some of " + ",".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, for a program to read")
    return parser


if __name__ == "__main__":
    main()
