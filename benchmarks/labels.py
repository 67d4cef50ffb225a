"""`python -m benchmarks.labels`: labels of 16,384 made-up features, asked of a stand-in for Claude on this machine.

From the files of a corpus pass to label files, as `labels generate` does it, without a model: reading, estimate,
calls over HTTP, journal. Prints Markdown.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from benchmarks import labels_evidence, machine
from benchmarks.memory import peak_bytes
from benchmarks.options import at_least
from benchmarks.report import GIB, table, verdicts
from neuroscope_jax import platforms
from neuroscope_jax.autointerp import expected, label_file
from neuroscope_jax.autointerp.ask_flags import MODEL, AskFlags
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.label_journal import LabelJournal
from neuroscope_jax.autointerp.labelling import Labelling
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.rounds import Rounds
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.features.label_details import save_labels
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER
from tests.autointerp import stand_in

MOST_SECONDS, MOST_GROWTH = 180, 0.1
READY = 60.0  # seconds that the stand-in has to start
EXAMPLES = 20
UNLIMITED = 1e9  # dollars: nobody is paid


class Measured(msgspec.Struct):
    """What the run took."""

    seconds: float = 0.0
    estimate_seconds: float = 0.0
    labelled: int = 0
    quarter_bytes: int = 0
    peak_bytes: int = 0


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the report."""
    options = _parser().parse_args(arguments)
    platforms.choose("cpu")
    with tempfile.TemporaryDirectory() as folder:
        _apart(labels_evidence.write, folder, options.features)
        with _stand_in() as url:
            os.environ |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
            measured = measure(Path(folder), options.concurrency)
    sys.stdout.write(markdown(measured, options.features, options.concurrency))


def measure(folder: Path, concurrency: int) -> Measured:
    """Label every feature of the pass in a folder."""
    found, began = Measured(), time.perf_counter()
    tokenizer = ChatTokenizer.load(DEMO_FOLDER / "model")
    evidence = Evidence(Files(folder / "made_up_stats.json"), tokenizer)
    width = evidence.stats.width
    asking = AskFlags(concurrency=concurrency, max_usd=UNLIMITED).asking(MODEL)
    labelling = _Watched(evidence, range(width), EXAMPLES, MODEL, {})
    labelling.measured = found
    with LabelJournal(folder / "answers.jsonl") as journal:
        rounds = Rounds(asking, journal, tokenizer)
        cost, _ = expected.of_labels(rounds, labelling)
        found.estimate_seconds = time.perf_counter() - began
        rounds.check(cost)
        rounds.ask("labels", labelling, cost)
    details = label_file.new(NeuroscopeConfig(), evidence.provenance.pair)
    details.features.update(labelling.found)
    save_labels(folder / "labels.json", details)
    found.seconds, found.peak_bytes = time.perf_counter() - began, peak_bytes()
    found.labelled = sum(detail.label is not None for detail in labelling.found.values())
    return found


class _Watched(Labelling):
    """Looks at the memory when a quarter of the answers are in."""

    measured: Measured

    def take(self, question: Question, answer: Answer) -> None:
        super().take(question, answer)
        if len(self.found) == self._evidence.stats.width // 4:
            self.measured.quarter_bytes = peak_bytes()


def markdown(found: Measured, features: int, concurrency: int) -> str:
    """What was measured, and how it stands to what is required."""
    growth = found.peak_bytes / found.quarter_bytes - 1
    asking = found.seconds - found.estimate_seconds
    rows = [
        ("features labelled", f"{found.labelled:,} of {features:,}"),
        ("all", f"{found.seconds:.0f} s"),
        ("reading and estimating", f"{found.estimate_seconds:.0f} s"),
        ("asking and writing", f"{asking:.0f} s, {features / asking:.0f} calls/s"),
        ("peak memory after a quarter of the answers", f"{found.quarter_bytes / GIB:.3f} GiB"),
        ("peak memory at the end", f"{found.peak_bytes / GIB:.3f} GiB"),
    ]
    required = [
        ("every feature labelled", f"{found.labelled:,}", found.labelled == features),
        (f"at most {MOST_SECONDS} s", f"{found.seconds:.0f} s", found.seconds <= MOST_SECONDS),
        (f"memory grows by at most {MOST_GROWTH:.0%} after a quarter", f"{growth:+.1%}", growth <= MOST_GROWTH),
    ]
    about = " · ".join(f"{name} {value}" for name, value in machine.describe().items())
    head = f"# Labels of {features:,} features, {concurrency} calls in flight"
    return "\n\n".join([head, about, table(("", "found"), rows), verdicts(required)]) + "\n"


@contextlib.contextmanager
def _stand_in() -> Iterator[str]:
    """The address of a stand-in in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs,))
    process.start()
    try:
        if not ours.poll(READY):
            sys.exit("error: the stand-in did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(announce: Connection) -> None:
    stand_in.serve_forever(announce.send)


def _apart(work: object, *arguments: object) -> None:
    """Do some work in a process of its own, whose memory is not this one's."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)  # type: ignore[arg-type]
    process.start()
    process.join()
    if process.exitcode:
        sys.exit("error: the features could not be made up, see above")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__.partition("\n")[0])
    parser.add_argument("--features", type=at_least(8), default=16_384)
    parser.add_argument("--concurrency", type=at_least(1), default=50, help="calls in flight")
    return parser


if __name__ == "__main__":
    main()
