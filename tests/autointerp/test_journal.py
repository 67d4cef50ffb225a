"""The file of answers: whole lines only, one process at a time, small in memory."""

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from neuroscope_jax.autointerp import journal as journal_module
from neuroscope_jax.autointerp.journal import Journal
from neuroscope_jax.autointerp.question import Answer
from neuroscope_jax.errors import UserError
from tests.autointerp.asking import MODEL, question

GOOD = {"label": "greeting ↵ “hi”", "confidence": "high", "found": True}


def answer(feature: int, failure: str | None = None, fields: dict[str, Any] | None = None) -> Answer:
    fields = None if failure else fields or GOOD
    return Answer(question(feature).key(MODEL), feature, "label", fields, failure, 100, 20, "2026-01-01T00:00:00+00:00")


def found(journal: Journal, feature: int) -> Answer | None:
    return journal.find(question(feature).key(MODEL), question(feature))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels" / "answers.jsonl"


def test_answers_are_found_again_now_and_later(path: Path) -> None:
    with Journal(path) as journal:
        for feature in range(3):
            journal.add(answer(feature))
            assert found(journal, feature) == answer(feature)
        assert found(journal, 3) is None
    with Journal(path) as journal:
        assert [found(journal, feature) for feature in range(3)] == [answer(feature) for feature in range(3)]


def test_a_line_is_on_file_when_add_returns(path: Path) -> None:
    with Journal(path) as journal:
        journal.add(answer(0))
        assert path.read_bytes().count(b"\n") == 1


def test_the_key_is_of_all_that_decides_the_answer() -> None:
    one = question(1)
    changes = {"system": "s", "prompt": "p", "schema": {"type": "object", "properties": {}}, "max_tokens": 7}
    keys = {one.key(MODEL), one.key("another")}
    for name, value in changes.items():
        keys.add(type(one)(**{**vars(one), name: value}).key(MODEL))
    assert len(keys) == 6
    assert type(one)(**{**vars(one), "feature": 5, "part": "score:1"}).key(MODEL) == one.key(MODEL)


@pytest.mark.parametrize("left", [1, 30, -2])
def test_a_torn_last_line_is_cut_off(path: Path, left: int) -> None:
    with Journal(path) as journal:
        journal.add(answer(0))
        whole = path.read_bytes()
        journal.add(answer(1))
    path.write_bytes(path.read_bytes()[: len(whole) + left if left > 0 else left])
    with Journal(path) as journal:
        assert path.read_bytes() == whole
        assert found(journal, 1) is None
        journal.add(answer(1))
    with Journal(path) as journal:
        assert found(journal, 1) == answer(1)


def test_a_damaged_line_is_named(path: Path) -> None:
    with Journal(path) as journal:
        journal.add(answer(0))
    path.write_bytes(path.read_bytes() + b'{"key": 1}\n' + path.read_bytes())
    with pytest.raises(UserError, match="answers.jsonl: line 2"), Journal(path):
        pass
    assert path.read_bytes().count(b"\n") == 3


def test_failures_of_the_way_are_asked_again_and_those_of_the_model_only_on_demand(path: Path) -> None:
    with Journal(path) as journal:
        for feature, failure in enumerate(["refusal", "cut off", "timeout", "529 overloaded_error"]):
            journal.add(answer(feature, failure))
        journal.add(answer(4, fields={"label": "misses the others"}))
        journal.add(answer(5))
        failures = [known and known.failure for known in (found(journal, feature) for feature in range(6))]
        assert failures == ["refusal", "cut off", None, None, "wrong keys: confidence, found missing", None]
        assert found(journal, 5) == answer(5)
    with Journal(path, retry_failed=True) as journal:
        assert [found(journal, feature) for feature in range(6)] == [None] * 5 + [answer(5)]


def test_a_later_answer_replaces_a_failure(path: Path) -> None:
    with Journal(path) as journal:
        journal.add(answer(0, "refusal"))
        journal.add(answer(0))
        assert found(journal, 0) == answer(0)
    with Journal(path) as journal:
        assert found(journal, 0) == answer(0)


def test_two_processes_do_not_share_a_file(path: Path) -> None:
    code = "import sys; from pathlib import Path; from neuroscope_jax.autointerp.journal import Journal\n"
    code += "with Journal(Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(UserError, match="another process"), Journal(path):
            pass
        other.kill()
    with Journal(path) as journal:  # the lock of a killed process is free
        journal.add(answer(0))


def test_a_full_disk_is_told_and_leaves_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """Takes half of a line, then no more, as a full disk does."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, line: bytes) -> int:
            return int(self.file.write(line[: len(line) // 2]))

        def fileno(self) -> int:
            return int(self.file.fileno())

    with Journal(path) as journal:
        journal.add(answer(0))
        whole = path.read_bytes()
        monkeypatch.setattr(journal, "_out", Full(journal._out))
        with pytest.raises(UserError, match="the answers in it are safe"):
            journal.add(answer(1))
    assert path.read_bytes() == whole


def test_memory_does_not_hold_the_answers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """150,000 answers: less than 40 MB."""
    monkeypatch.setattr(journal_module, "SYNCED_EVERY", 1e9)
    path.parent.mkdir()
    lines = 5_000
    with Journal(path) as journal:
        for feature in range(lines):
            journal.add(answer(feature))
    tracemalloc.start()
    with Journal(path):
        held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 40e6 * lines / 150_000


def test_a_last_answer_without_its_newline_is_kept(path: Path) -> None:
    with Journal(path) as journal:
        journal.add(answer(0))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with Journal(path) as journal:
        assert found(journal, 0) == answer(0)
        journal.add(answer(1))
    assert path.read_bytes().startswith(whole)
    with Journal(path) as journal:
        assert [found(journal, feature) for feature in range(2)] == [answer(0), answer(1)]


@pytest.mark.parametrize(
    "foreign",
    [b"notes of mine", b'{"hello": 1}', b'{"key": "x"}', b'{"x":' * 300_000, b'{"x":' * 300_000 + b"\n", b"[1, 2]"],
    ids=["text", "object", "key", "deep", "deep line", "list"],
)
def test_a_file_of_something_else_is_refused_and_left_as_it_is(path: Path, foreign: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(foreign)
    with pytest.raises(UserError, match="answers.jsonl: line 1 is not an answer"), Journal(path):
        pass
    assert path.read_bytes() == foreign


def test_what_a_power_cut_leaves_is_cut_off(path: Path) -> None:
    with Journal(path) as journal:
        journal.add(answer(0))
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 100)
    with Journal(path) as journal:
        assert found(journal, 0) == answer(0)
    assert path.read_bytes() == whole


def test_a_reader_changes_nothing(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        assert found(journal, 0) is None
    assert not path.parent.exists()
    with Journal(path) as journal:
        journal.add(answer(0))
        with Journal(path, read_only=True) as reader:
            assert found(reader, 0) == answer(0)
    torn = path.read_bytes() + b'{"key":"'
    path.write_bytes(torn)
    with Journal(path, read_only=True) as journal:
        assert found(journal, 0) == answer(0)
    assert path.read_bytes() == torn
