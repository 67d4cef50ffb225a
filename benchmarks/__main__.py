"""`python -m benchmarks`: every figure of this project on one machine, beside the programs it is compared with.

Prints Markdown; --json keeps every figure, --markdown the report. Both are written after each program, and --resume
goes on with what the JSON file has. The checkpoint is made once, in the cache folder.
"""

import argparse
import logging
import sys
from pathlib import Path

import msgspec

from benchmarks import decode, machine
from benchmarks.checkpoint import checkpoint
from benchmarks.options import at_least, some_of
from benchmarks.processes import MeasurementFailed
from benchmarks.results import Plan
from benchmarks.sections import SECTIONS, Orders
from benchmarks.shapes import GEMMA_2_2B, SHAPES
from benchmarks.yardstick_report import markdown
from benchmarks.yardstick_results import Yardstick
from neuroscope_jax import platforms


def main(arguments: list[str] | None = None) -> None:
    """Measure section by section, write the reports, print the Markdown. Ends with status 1 where a program failed."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = _options(arguments)
    platforms.choose("cpu")  # only the processes that measure may hold an accelerator
    folder = str(checkpoint(SHAPES[options.shape]))
    plan = Plan(folder, options.shape, "float32", options.platform, options.tokens, options.repeats)
    try:
        yardstick = _begun(options, plan)
    except MeasurementFailed as error:
        sys.exit(f"error: {error}")
    _write(yardstick, options)
    for section in options.only:
        for _ in SECTIONS[section](yardstick, Orders(plan, options.dtype)):
            _write(yardstick, options)
    sys.stdout.write(markdown(yardstick))
    if yardstick.failed:
        sys.exit(f"error: {len(yardstick.failed)} programs failed, see above and the end of the report")


def _begun(options: argparse.Namespace, plan: Plan) -> Yardstick:
    """What the JSON file has of a run like this one, or a new run with the probe alone."""
    if not (options.resume and options.json.exists()):
        return Yardstick(plan.tokens, plan.repeats, decode.begin(plan))
    try:
        found = msgspec.json.decode(options.json.read_bytes(), type=Yardstick)
    except msgspec.MsgspecError as error:
        sys.exit(f"error: {options.json}: no report of python -m benchmarks: {error}; name another --json file")
    wanted = (plan.shape, plan.platform, plan.tokens, plan.repeats, machine.describe())
    run = found.decode
    if wanted != (run.shape, run.platform, found.tokens, found.repeats, run.machine):
        sys.exit(
            f"error: {options.json} was measured on another machine or with another --shape, --platform, --tokens or "
            "--repeats; --resume goes on with the same ones. Name another --json file, or leave out --resume"
        )
    return found


def _write(yardstick: Yardstick, options: argparse.Namespace) -> None:
    """Each file whole or as it was."""
    if options.json is not None:
        _replace(options.json, msgspec.json.format(msgspec.json.encode(yardstick), indent=2))
    if options.markdown is not None:
        _replace(options.markdown, markdown(yardstick).encode())


def _replace(path: Path, content: bytes) -> None:
    aside = path.with_name(path.name + ".unfinished")
    aside.write_bytes(content)
    aside.replace(path)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    sections, dtypes = tuple(SECTIONS), decode.OURS
    parser.add_argument("--shape", choices=SHAPES, default=GEMMA_2_2B.name)
    parser.add_argument("--only", type=some_of(sections), default=list(sections), help="some of " + ",".join(sections))
    parser.add_argument(
        "--dtype",
        type=some_of(dtypes),
        default=["bfloat16", "float32", "int8"],
        help=f"some of {','.join(dtypes)}: all of them in decode, peers and corpus, the first in the other sections",
    )
    parser.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu")
    parser.add_argument("--tokens", type=at_least(2), default=32, help="tokens in each answer")
    parser.add_argument("--repeats", type=at_least(1), default=3, help="of each measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, for a program to read")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the report that is also printed")
    parser.add_argument("--resume", action="store_true", help="measure only what the --json file lacks")
    options = parser.parse_args(arguments)
    if options.resume and options.json is None:
        parser.error("--resume: needs --json FILE, the report to go on with")
    return options


if __name__ == "__main__":
    main()
