"""`python -m benchmarks.load --minutes 5`: a server under many clients and readers at once, then told to stop.

Prints Markdown and ends with status 1 where something did not hold; --json FILE also keeps every figure.
"""

import argparse
import asyncio
import contextlib
import logging
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from benchmarks.load_clients import Clients, solo_answers
from benchmarks.load_readers import Readers
from benchmarks.load_report import Figures, failures, markdown
from benchmarks.options import above_zero, at_least

logger = logging.getLogger("benchmarks")

START_SECONDS = 300.0
EXIT_SECONDS = 30.0
READ_ON_SECONDS = 2.0  # for readers to take in what was sent before the end
SAMPLE_SECONDS = 1.0
WARM_UP = 0.25  # of the time, before memory is looked at
URLS = re.compile(r"(http://\S+)/v1/(?:chat/completions|features/stream)")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the report, write the JSON."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    options = _parser().parse_args(arguments)
    with _server(options.clients) as (process, chat_url, features_url):
        figures = asyncio.run(_measure(process, chat_url, features_url, options))
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2))
    sys.stdout.write(markdown(figures))
    if wrong := failures(figures):
        sys.exit("did not hold: " + "; ".join(wrong))


async def _measure(
    process: subprocess.Popen[bytes], chat_url: str, features_url: str, options: argparse.Namespace
) -> Figures:
    solo = await solo_answers(chat_url)
    readers = Readers(features_url, options.readers)
    clients = Clients(chat_url, options.clients, solo)
    figures = Figures(options.clients, options.readers, 60 * options.minutes, clients.counts, readers.counts)
    await readers.connected()
    before = await clients.metrics()
    tasks = [asyncio.create_task(client) for client in clients.working()]
    figures.rss = await _watch_memory(process.pid, figures.seconds)
    after = await clients.metrics()
    figures.tokens = after["generated_tokens_total"] - before["generated_tokens_total"]
    figures.events = after["feature_events_total"] - before["feature_events_total"]
    figures.first_token_seconds = sorted(clients.first_token_seconds)
    clients.stopping = readers.stopping = True
    figures.exit_code, figures.exit_seconds = await _terminate(process)
    await asyncio.wait([*tasks, *readers.tasks], timeout=READ_ON_SECONDS)
    for task in (*tasks, *readers.tasks):
        task.cancel()
    await asyncio.gather(*tasks, *readers.tasks, return_exceptions=True)
    readers.finish()
    return figures


async def _watch_memory(pid: int, seconds: float) -> list[int]:
    """Resident bytes, sampled after the warm-up until the time is over."""
    watched, began, found = psutil.Process(pid), time.monotonic(), []
    while (passed := time.monotonic() - began) < seconds:
        if passed >= WARM_UP * seconds:
            found.append(watched.memory_info().rss)
        await asyncio.sleep(min(SAMPLE_SECONDS, seconds / 20))
    return found


async def _terminate(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """SIGTERM in the middle of everything; the exit status and how long it took."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(process.wait, EXIT_SECONDS)
    return code, time.monotonic() - began


@contextlib.contextmanager
def _server(clients: int) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """The demo pair on free ports, its queue a little too short for all clients at once."""
    command = [sys.executable, "-m", "server", "--config", "demo", "--port", "0", "--features-port", "0"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as stderr:
            queue = str(max(1, clients * 4 // 5))
            process = subprocess.Popen([*command, "--queue-size", queue], stderr=stderr)
        try:
            chat_url, features_url = _wait_for_urls(process, log)
            yield process, chat_url, features_url
        finally:
            process.kill()
            process.wait()


def _wait_for_urls(process: subprocess.Popen[bytes], log: Path) -> list[str]:
    began = time.monotonic()
    while time.monotonic() - began < START_SECONDS and process.poll() is None:
        found = URLS.findall(log.read_text())
        if len(found) == 2:
            return found
        time.sleep(0.1)
    sys.exit(f"error: the server did not come up:\n{log.read_text()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=above_zero, default=5.0, help="of load, before the server is told to stop")
    parser.add_argument("--clients", type=at_least(1), default=200, help="requests under way at any time")
    parser.add_argument("--readers", type=at_least(5), default=50, help="of the features stream, some of them bad ones")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, for a program to read")
    return parser


if __name__ == "__main__":
    main()
