"""`python -m benchmarks.corpus`: speed and memory of a corpus pass, beside delphi's LatentCache on the same tokens.

Prints Markdown; --json FILE also keeps every figure. The random checkpoint is made once, in the cache folder.
"""

import argparse
import importlib.util
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from benchmarks import machine
from benchmarks.corpus_pairs import TOKENS, corpus_pair
from benchmarks.corpus_report import markdown
from benchmarks.corpus_results import CorpusRun, OurPass, PassPlan, PeerPass, Report
from benchmarks.options import at_least, some_of
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.shapes import TINY
from neuroscope_jax import platforms

logger = logging.getLogger("benchmarks")

PROGRAMS = ("float32", "bfloat16", "delphi-float32", "delphi-bfloat16")
INSTALL = "delphi is not installed; pip install -e '.[bench]' && pip install --no-deps eai-delphi"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the report, write the JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = _parser().parse_args(arguments)
    platforms.choose("cpu")  # only the processes that measure may hold an accelerator
    report = Report(machine.describe(), options.platform, [])
    try:
        for name in options.shape:
            for _ in measure_pair(report, name, options):
                if options.json is not None:
                    options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    except MeasurementFailed as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(markdown(report))


def measure_pair(report: Report, name: str, options: argparse.Namespace) -> Iterator[None]:
    """Add one pair's run to the report: in each round every program once, every other round in reverse order."""
    logger.info("%s: preparing weights and samples", name)
    pair = corpus_pair(name, options.tokens)
    run = CorpusRun(name, len(pair.samples), {}, {}, {})
    report.runs.append(run)
    order = list(_measurable(run, options))
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples.npy"
        np.save(samples, pair.samples)
        plan = PassPlan(str(pair.folder), str(pair.sae), pair.layer, str(samples), "float32", options.platform)
        for number in range(options.repeats):
            for program in order:
                logger.info("%s: round %d of %d, %s", name, number + 1, options.repeats, program)
                _measure(run, program, msgspec.structs.replace(plan, dtype=program.removeprefix("delphi-")))
                yield
            order.reverse()


def _measure(run: CorpusRun, program: str, plan: PassPlan) -> None:
    if program == plan.dtype:
        run.ours.setdefault(program, []).append(measure("ours_corpus", plan, OurPass))
    else:
        run.peers.setdefault(program, []).append(measure("delphi_peer", plan, PeerPass, TQDM_DISABLE="1"))


def _measurable(run: CorpusRun, options: argparse.Namespace) -> Iterator[str]:
    """The programs asked for that can run here; the others are noted in the run, with the reason."""
    for program in options.only:
        if program.startswith("delphi-") and (reason := _no_peer(options.platform)):
            logger.warning("%s: SKIPPED, %s", program, reason)
            run.skipped[program] = reason
        else:
            yield program


def _no_peer(platform: str) -> str:
    """Why delphi cannot be measured here; empty where it can."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "delphi")):
        return INSTALL
    return "delphi runs on cpu and gpu only" if platform == "tpu" else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__.partition("\n")[0])
    default = [name for name in TOKENS if name != TINY.name]
    parser.add_argument("--shape", type=some_of(tuple(TOKENS)), default=default, help="some of " + ",".join(TOKENS))
    parser.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu")
    parser.add_argument("--tokens", type=at_least(1), help="of a pass, rounded up to whole batches")
    parser.add_argument("--repeats", type=at_least(1), default=3, help="processes of each program")
    parser.add_argument("--only", type=some_of(PROGRAMS), default=list(PROGRAMS), help="some of " + ",".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, for a program to read")
    return parser


if __name__ == "__main__":
    main()
