"""The load itself, for a few seconds: what must hold holds, and what did not would be told."""

import contextlib
import json
import subprocess
import sys

import pytest

from benchmarks import load
from benchmarks.load_report import Figures, failures
from tests.server import conftest as fake_server


def figures(**fields):
    stream = {"answers without an end": 0, **fields.pop("stream", {})}
    return Figures(1, 5, 1.0, fields.pop("requests", {}), stream, **{"rss": [100, 101], **fields})


@contextlib.contextmanager
def quick_server(_clients):
    """In the place of the demo pair, which takes long to compile: an engine that answers by arithmetic."""
    command = [sys.executable, fake_server.__file__, "endless"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, *process.stdout.readline().split()
        finally:
            process.kill()


@pytest.mark.slow
def test_a_few_seconds_of_load(tmp_path, capsys, monkeypatch):
    report = tmp_path / "run.json"
    monkeypatch.setattr(load, "_server", quick_server)
    monkeypatch.setattr("benchmarks.load_report.MEMORY_SPREAD", 1.0)  # nothing is flat in its first seconds
    load.main(["--minutes", "0.04", "--clients", "12", "--readers", "10", "--json", str(report)])
    found = json.loads(report.read_text())
    assert found["requests"]["streamed"] + found["requests"]["plain"] > 0
    assert found["stream"]["events read, healthy"] > 0
    assert found["exit_code"] == 0
    assert "| exit status after SIGTERM | 0, in " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({}, []),
        ({"requests": {"plain": 3, "WRONG plain: wrong answer": 1}}, ["WRONG plain: wrong answer: 1"]),
        ({"stream": {"LOST healthy: holes": 2}}, ["LOST healthy: holes: 2"]),
        ({"stream": {"answers without an end": 1}}, ["answers without an end: 1"]),
        ({"rss": [100, 100, 100, 120]}, ["memory moved by 14.3%"]),
        ({"exit_code": -9, "exit_seconds": 30.0}, ["exit status -9 after 30.0 s"]),
        ({"exit_seconds": 6.0}, ["exit status 0 after 6.0 s"]),
    ],
)
def test_what_did_not_hold_is_told(seen, told):
    assert failures(figures(**seen)) == told
