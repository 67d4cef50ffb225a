"""`python -m benchmarks.corpus`: speed and memory of a corpus pass, beside delphi's LatentCache on the same tokens.

Prints Markdown; --json FILE also keeps every figure. The random checkpoint is made once, in the cache folder.
"""

import argparse
import contextlib
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from benchmarks import machine
from benchmarks.corpus_pairs import TOKENS, CorpusPair, corpus_pair
from benchmarks.corpus_report import markdown
from benchmarks.corpus_results import CorpusRun, OurPass, PassPlan, PeerPass, Report
from benchmarks.options import at_least, some_of
from benchmarks.peers import CORPUS_PEERS
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.shapes import TINY
from neuroscope_jax import platforms

logger = logging.getLogger("benchmarks")

OURS = ("float32", "bfloat16")
PROGRAMS = (*OURS, *CORPUS_PEERS)
USUAL = (*OURS, "delphi-float32", "delphi-bfloat16")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the report, write the JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = _parser().parse_args(arguments)
    platforms.choose("cpu")  # only the processes that measure may hold an accelerator
    report = Report(machine.describe(), options.platform, [])
    try:
        for name in options.shape:
            for _ in _measure_pair(report, name, options):
                if options.json is not None:
                    options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    except MeasurementFailed as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(markdown(report))


def _measure_pair(report: Report, name: str, options: argparse.Namespace) -> Iterator[None]:
    """Add one pair's run to the report, program by program."""
    logger.info("%s: preparing weights and samples", name)
    pair = corpus_pair(name, options.tokens)
    run = CorpusRun(name, len(pair.samples), {}, {}, {})
    report.runs.append(run)
    with plan_of(pair, options.platform) as plan:
        for program in rounds(run, options.only, options.repeats, options.platform):
            add(run, plan, program)
            yield


@contextlib.contextmanager
def plan_of(pair: CorpusPair, platform: Literal["cpu", "gpu", "tpu"]) -> Iterator[PassPlan]:
    """The orders of a process, with the pair's samples in a file that is there meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples.npy"
        np.save(samples, pair.samples)
        yield PassPlan(str(pair.folder), str(pair.sae), pair.layer, str(samples), "float32", platform)


def rounds(run: CorpusRun, programs: list[str], repeats: int, platform: str) -> Iterator[str]:
    """In each round every program that has not yet been measured in it, every other round in reverse order."""
    order = list(_measurable(run, programs, platform))
    for number in range(repeats):
        for program in order:
            if len((run.ours | run.peers).get(program, ())) <= number:
                logger.info("%s: round %d of %d, %s", run.pair, number + 1, repeats, program)
                yield program
        order.reverse()


def add(run: CorpusRun, plan: PassPlan, program: str) -> None:
    """Measure one of PROGRAMS once more. Raises MeasurementFailed."""
    if program in OURS:
        mine = msgspec.structs.replace(plan, dtype=program)
        run.ours.setdefault(program, []).append(measure("ours_corpus", mine, OurPass))
    else:
        peer = CORPUS_PEERS[program]
        mine = msgspec.structs.replace(plan, dtype=peer.dtype)
        run.peers.setdefault(program, []).append(measure(peer.module, mine, PeerPass, TQDM_DISABLE="1"))


def _measurable(run: CorpusRun, programs: list[str], platform: str) -> Iterator[str]:
    """The programs that can run here; the others are noted in the run, with the reason."""
    for program in programs:
        run.skipped.pop(program, None)
        if program not in OURS and (reason := CORPUS_PEERS[program].missing(platform)):
            logger.warning("%s: SKIPPED, %s", program, reason)
            run.skipped[program] = reason
        else:
            yield program


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__.partition("\n")[0])
    default = [name for name in TOKENS if name != TINY.name]
    parser.add_argument("--shape", type=some_of(tuple(TOKENS)), default=default, help="some of " + ",".join(TOKENS))
    parser.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu")
    parser.add_argument("--tokens", type=at_least(1), help="of a pass, rounded up to whole batches")
    parser.add_argument("--repeats", type=at_least(1), default=3, help="processes of each program")
    parser.add_argument("--only", type=some_of(PROGRAMS), default=list(USUAL), help="some of " + ",".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, for a program to read")
    return parser


if __name__ == "__main__":
    main()
