"""SIGINT and SIGTERM to a server in a process of its own, with streams open on both ports."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

WAIT_SECONDS = 20


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("conftest.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@contextlib.contextmanager
def open_streams(process):
    """Line iterators of a features stream and of a chat stream that has had two tokens and gets no more."""
    chat_url, features_url = process.stdout.readline().split()
    body = {"messages": [{"role": "user", "content": "a"}], "stream": True}
    with (
        httpx.Client(timeout=WAIT_SECONDS) as client,
        client.stream("GET", f"{features_url}/v1/features/stream") as features,
        client.stream("POST", f"{chat_url}/v1/chat/completions", json=body) as chat,
    ):
        chat_lines = chat.iter_lines()
        for line in chat_lines:
            if '"content":"c"' in line:
                break
        yield features.iter_lines(), chat_lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_open_streams_and_exits_with_0(process, number):
    with open_streams(process) as (features, chat):
        process.send_signal(number)
        assert "shutting down" in "".join(chat)
        assert [line for line in features if line.startswith("event: ")] == [
            "event: feature_activation",
            "event: feature_activation",
            "event: generation_complete",
        ]
    assert process.wait(WAIT_SECONDS) == 0
    assert process.stderr.read() == ""


def test_a_body_that_is_still_coming_is_given_up(process):
    chat, _ = map(httpx.URL, process.stdout.readline().split())
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((chat.host, chat.port), WAIT_SECONDS) as client:
        client.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        httpx.get(chat.join("/health"))  # a later request is answered, so that one has begun
        process.send_signal(signal.SIGTERM)
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"shutting_down" in answer
    assert process.wait(WAIT_SECONDS) == 0
    assert process.stderr.read() == ""


def test_second_signal_exits_at_once(process):
    with open_streams(process):
        process.send_signal(signal.SIGSTOP)  # so that both are there when it goes on
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait(WAIT_SECONDS) in (128 + signal.SIGTERM, 128 + signal.SIGINT)
