"""A real server in a process of its own, started by its command, and clients for it."""

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai

START_SECONDS = {"demo": 120.0, "gemma-2-2b-it": 3600.0}  # the real pair may have to be downloaded
ANSWER_SECONDS = 600.0
EXIT_SECONDS = 30.0
CHAT_URL = re.compile(r"(http://\S+)/v1/chat/completions")
FEATURES_URL = re.compile(r"(http://\S+)/v1/features/stream")


class Server:
    """Both ports of a running server and clients for them."""

    def __init__(self, process: subprocess.Popen[str], pair: str) -> None:
        self.pair = pair
        self.process = process
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        self.chat_url = self._url(CHAT_URL)
        self.features_url = self._url(FEATURES_URL)
        self.openai = openai.OpenAI(base_url=f"{self.chat_url}/v1", api_key="any", timeout=ANSWER_SECONDS)
        self.model = self.openai.models.list().data[0].id

    def chat(self, prompt: str, **fields: Any) -> Any:
        """One greedy request through the official client."""
        messages = [{"role": "user", "content": prompt}]
        options = {"temperature": 0, "max_tokens": 48, **fields}
        return self.openai.chat.completions.create(model=self.model, messages=messages, **options)

    @contextlib.contextmanager
    def features(self) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """(name, data) of each event, from a reader that is connected."""
        url = f"{self.features_url}/v1/features/stream"
        with httpx.Client(timeout=ANSWER_SECONDS) as client, client.stream("GET", url) as response:
            lines = response.iter_lines()
            next(lines)
            yield _events(lines)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def _url(self, pattern: re.Pattern[str]) -> str:
        seen = []
        while (line := self._lines.get(timeout=START_SECONDS[self.pair])) is not None:
            seen.append(line)
            if match := pattern.search(line):
                return match[1]
        raise AssertionError("the server ended before it was ready:\n" + "".join(seen))


def _events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@contextlib.contextmanager
def running(pair: str, cache: Path) -> Iterator[Server]:
    """A server on free ports; its exit status is checked at the end.

    `cache` keeps labels and statistics of whoever runs the tests out of it.
    """
    command = [sys.executable, "-m", "server", "--config", pair, "--port", "0", "--features-port", "0"]
    environment = {**os.environ, "NEUROSCOPE_CACHE": str(cache), "JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Server(process, pair)
            process.terminate()
            assert process.wait(EXIT_SECONDS) == 0
        finally:
            process.kill()
