"""`calibrate run` and `calibrate merge` as a user runs them, in processes of their own."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from neuroscope_jax import cli
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER

COMMAND = [sys.executable, "-m", "neuroscope_jax", "calibrate"]
SAMPLES = "160"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A cache folder of their own, shared so that the pass is compiled once."""
    cache = tmp_path_factory.mktemp("cache")
    return {**os.environ, "NEUROSCOPE_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def calibrate(environment: dict[str, str]) -> Run:
    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *words], env={**environment, **more}, capture_output=True, text=True, timeout=300
        )

    return run


@pytest.fixture(scope="module")
def unbroken(calibrate: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The statistics file of a whole run on one device, and what it printed."""
    stats = tmp_path_factory.mktemp("unbroken") / "demo_stats.json"
    done = calibrate("run", "--config", "demo", "--samples", SAMPLES, "--output", str(stats))
    assert done.returncode == 0, done.stderr
    return stats, done.stdout


def results(stats: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Statistics without their date, examples, windows and passages."""
    found = json.loads(stats.read_text())
    found["provenance"] = {k: v for k, v in found["provenance"].items() if k != "made"}
    parquet = [stats.with_name(f"demo_{name}.parquet") for name in ("examples", "windows", "passages")]
    examples, windows, passages = (pq.read_table(path).to_pylist() for path in parquet)
    return found, examples, windows, passages


def assert_same(stats: Path, other: Path) -> None:
    """Equal in counts, examples, windows and passages; statistics within 1e-5."""
    (found, *rows), (expected, *expected_rows) = results(stats), results(other)
    assert rows == expected_rows
    for name in ("mean_activation", "activation_variance", "max_activation"):
        pairs = [(a, b) for a, b in zip(found.pop(name), expected.pop(name), strict=True) if b is not None]
        assert len(pairs) > 1000
        np.testing.assert_allclose(*np.array(pairs).T, rtol=1e-5, atol=1e-7)
    assert found == expected


def test_a_run_writes_statistics_examples_and_windows_of_one_run(unbroken: tuple[Path, str]) -> None:
    stats, printed = unbroken
    found, examples, windows, _ = results(stats)
    assert found["tokens"] > 4_000
    assert found["provenance"]["samples"] == len(windows) == int(SAMPLES)
    for path in (stats.with_name(f"demo_{name}.parquet") for name in ("examples", "windows", "passages")):
        about = json.loads(pq.read_schema(path).metadata[b"neuroscope"])
        assert about["run"] == found["provenance"]["run"]
    fired = sum(count > 0 for count in found["count"])
    assert len({row["feature"] for row in examples}) == fired
    assert "L0" in printed
    assert str(stats) in printed
    assert "NaN" not in stats.read_text()
    assert not list(stats.parent.glob(".*"))


def test_max_activating_collection(unbroken: tuple[Path, str]) -> None:
    examples = results(unbroken[0])[1]
    by_feature: dict[int, list[dict[str, Any]]] = {}
    for row in examples:
        by_feature.setdefault(row["feature"], []).append(row)
        assert len(row["ids"]) <= 25
        assert row["cut_before"] == (row["at"] < 12)
        assert row["cut_after"] == (len(row["ids"]) - row["at"] - 1 < 12)
    for rows in by_feature.values():
        top = [row["activation"] for row in rows if row["kind"] == "top"]
        assert top == sorted(top, reverse=True)
        assert 1 <= len(top) <= 20
        assert len({(row["document"], row["sample"]) for row in rows}) == len(rows)
    assert any(len(row["ids"]) == 25 for row in examples)
    shown = next(row for row in examples if row["kind"] == "top" and not row["cut_before"])
    assert shown["before"]
    assert shown["token"]


def test_contexts_are_those_of_the_corpus(unbroken: tuple[Path, str], environment: dict[str, str]) -> None:
    (stored,) = (Path(environment["NEUROSCOPE_CACHE"]) / "corpus").glob(f"demo-{SAMPLES}-*/documents.jsonl.gz")
    with gzip.open(stored, "rt") as file:
        texts = [json.loads(line)["text"] for line in file]
    documents = ChatTokenizer.load(DEMO_FOLDER / "model").encode_documents(texts)
    _, examples, windows, passages = results(unbroken[0])
    for row in examples[::50]:
        first = row["offset"] - row["at"]
        assert row["ids"] == documents[row["document"]][first : first + len(row["ids"])]
        assert row["offset"] // 127 == row["sample"]
    for row in windows:
        assert row["ids"] == documents[row["document"]][row["offset"] :][: len(row["ids"])]
        assert len(row["ids"]) == min(25, len(documents[row["document"]]))
    for row in passages:
        assert row["ids"] == documents[row["document"]][row["sample"] * 127 :][:127]
    cited = {(row["document"], row["sample"]) for row in examples}
    assert [(row["document"], row["sample"]) for row in passages] == sorted(cited)


@pytest.mark.slow
def test_killed_at_any_moment_the_same_command_ends_with_the_same_result(
    calibrate: Run, environment: dict[str, str], unbroken: tuple[Path, str], tmp_path: Path
) -> None:
    stats, folder = tmp_path / "demo_stats.json", tmp_path / "unfinished"
    words = ["run", "--config", "demo", "--samples", SAMPLES, "--output", str(stats), "--run-folder", str(folder)]
    saved_before: list[str] = []
    for _ in range(2):  # killed twice, the second time further on
        process = subprocess.Popen([*COMMAND, *words, "--save-every", "0"], env=environment, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while (saved := _saved(folder)) == saved_before or not saved:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        saved_before = _saved(folder)
    assert not stats.exists()
    done = calibrate(*words)
    assert done.returncode == 0, done.stderr
    assert "going on with the pass" in done.stderr
    assert results(stats) == results(unbroken[0])
    assert not folder.exists()


def _saved(folder: Path) -> list[str]:
    state = folder / "state"
    return sorted(p.name for p in state.iterdir() if p.name.isdigit()) if state.exists() else []


@pytest.mark.slow
def test_four_devices_find_the_same(calibrate: Run, unbroken: tuple[Path, str], tmp_path: Path) -> None:
    stats = tmp_path / "demo_stats.json"
    words = ("run", "--config", "demo", "--samples", SAMPLES, "--output", str(stats))
    done = calibrate(*words, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert done.returncode == 0, done.stderr
    assert_same(stats, unbroken[0])


@pytest.mark.slow
def test_two_processes_find_the_same(
    calibrate: Run, environment: dict[str, str], unbroken: tuple[Path, str], tmp_path: Path
) -> None:
    stats = tmp_path / "demo_stats.json"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["run", "--config", "demo", "--samples", SAMPLES, "--output", str(stats), "--dtype", "float32"]
    hosts = ["--distributed", "--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process"]
    processes = [
        subprocess.Popen([*COMMAND, *words, *hosts, str(i)], env=environment, stderr=subprocess.PIPE, text=True)
        for i in (0, 1)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert_same(stats, unbroken[0])
    shards = sorted(tmp_path.glob("*.npz"))
    assert [path.name for path in shards] == ["demo_shard_0_of_2.npz", "demo_shard_1_of_2.npz"]

    again = tmp_path / "again" / "demo_stats.json"
    done = calibrate("merge", "--config", "demo", *map(str, shards[::-1]), "--output", str(again))
    assert done.returncode == 0, done.stderr
    assert results(again) == results(stats)
    one = calibrate("merge", "--config", "demo", str(shards[1]))
    assert one.returncode == 1
    assert "shards of hosts [1] of a pass by 2" in one.stderr


@pytest.mark.slow
def test_a_full_disk_leaves_the_earlier_result(
    environment: dict[str, str], unbroken: tuple[Path, str], tmp_path: Path
) -> None:
    stats = tmp_path / "demo_stats.json"
    stats.write_text("earlier")
    words = [*COMMAND, "run", "--config", "demo", "--samples", "50", "--output", str(stats)]
    # No file may grow beyond 100 kB: what a write to a full disk looks like from inside.
    limited = f"ulimit -f 100; exec {' '.join(words)} --run-folder {tmp_path / 'unfinished'}"
    done = subprocess.run(["bash", "-c", limited], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "run the same command again" in done.stderr
    assert stats.read_text() == "earlier"


def refused(done: subprocess.CompletedProcess[str], *told: str) -> None:
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    for words in told:
        assert words in done.stderr


@pytest.mark.slow
def test_a_run_folder_of_another_pass_is_refused(calibrate: Run, environment: dict[str, str], tmp_path: Path) -> None:
    settings = tmp_path / "unfinished" / "settings.json"
    stats = tmp_path / "demo_stats.json"
    words = ["run", "--config", "demo", "--run-folder", str(settings.parent), "--output", str(stats)]
    limited = f"ulimit -f 100; exec {' '.join([*COMMAND, *words])} --samples 20"
    assert subprocess.run(["bash", "-c", limited], env=environment, capture_output=True, timeout=300).returncode == 1
    assert settings.exists()
    refused(calibrate(*words, "--samples", "21"), "an unfinished pass of demo", "20 samples", "21 samples", "--restart")
    found = json.loads(settings.read_text())
    found["name"], found["provenance"]["pair"]["sae_sha256"] = "other", "0" * 64
    settings.write_text(json.dumps(found))
    refused(calibrate(*words, "--samples", "20"), "00000000")
    done = calibrate(*words, "--samples", "20", "--restart")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--samples", "0"], "--samples 0: expected from 1"),
        (["--seed", "-1"], "--seed -1"),
        (["--processes", "2"], "--distributed"),
        (["--output", "stats"], "ends in .json"),
        (["--corpus-path", "/nowhere"], "/nowhere"),
        (["--sae-layer", "9"], "layer"),
    ],
)
def test_mistakes_are_told(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    assert cli.run(["calibrate", "run", "--config", "demo", *words]) in (1, 2)
    assert told in capsys.readouterr().err


def test_a_corpus_without_text_is_refused(calibrate: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    done = calibrate("run", "--config", "demo", "--corpus-path", str(tmp_path), "--output", str(tmp_path / "s.json"))
    refused(done, str(tmp_path))
    assert not (tmp_path / "s.json").exists()


@pytest.mark.parametrize("coordinator", ["nonsense", "127.0.0.1:99999", "no.such.host.invalid:80"])
@pytest.mark.slow
def test_a_coordinator_that_cannot_be_is_told(calibrate: Run, tmp_path: Path, coordinator: str) -> None:
    hosts = ("--distributed", "--coordinator", coordinator, "--processes", "2", "--process", "1")
    refused(calibrate("run", "--config", "demo", *hosts, "--output", str(tmp_path / "s.json")), coordinator)


def test_an_output_that_cannot_be_written_is_told_before_the_pass(calibrate: Run, tmp_path: Path) -> None:
    (tmp_path / "demo_stats.json").mkdir()
    examples = tmp_path / "demo_examples.parquet"
    examples.write_text("earlier")
    done = calibrate("run", "--config", "demo", "--output", str(tmp_path / "demo_stats.json"))
    refused(done, "demo_stats.json", "directory")
    assert "samples" not in done.stderr
    assert examples.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo_examples.parquet", "demo_stats.json"]


@pytest.mark.slow
def test_what_lies_in_a_run_folder_stays(calibrate: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("run", "--config", "demo", "--samples", "20", "--run-folder", str(folder))
    done = calibrate(*words, "--output", str(folder / "demo_stats.json"))
    assert done.returncode == 0, done.stderr
    names = ["demo_examples.parquet", "demo_passages.parquet", "demo_stats.json", "demo_windows.parquet"]
    assert sorted(path.name for path in folder.iterdir()) == names
    refused(calibrate(*words, "--output", str(tmp_path / "other_stats.json")), "holds demo_examples.parquet")
