"""A report takes the place of an earlier one and of nothing else."""

import errno
import os
from pathlib import Path

import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.pages.folder import MARKER, check, mark, replaced


def written(out: Path, text: str) -> None:
    with replaced(out) as fresh:
        (fresh / "index.html").write_text(text)
        (fresh / "data").mkdir()
        (fresh / "data" / "00000.js").write_text(text)
        mark(fresh, "program", "now")


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


REPORT = ["data", "data/00000.js", "index.html", MARKER]


def test_new_empty_and_earlier(tmp_path):
    out = tmp_path / "deep" / "report"
    written(out, "first")
    assert names(out) == REPORT
    written(out, "second")
    assert (out / "index.html").read_text() == "second"
    (tmp_path / "empty").mkdir()
    written(tmp_path / "empty", "third")
    assert names(tmp_path / "empty") == REPORT
    assert entries(tmp_path) == ["deep", "empty"]
    assert entries(tmp_path / "deep") == ["report"]


@pytest.mark.parametrize("name", ["notes.txt", "index.html", "data/mine.js", "data/00000.json", ".hidden"])
def test_others_files_are_not_replaced(tmp_path, name):
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(UserError, match=r"--out .*out: holds .*; expected a folder that is new"):
        written(tmp_path / "out", "new")
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["notes.txt", "mine.html", "data/mine.js", "data/00000.json", ".hidden", "sub/a.js"])
def test_others_files_beside_an_earlier_report_are_not_lost(tmp_path, name):
    written(tmp_path / "out", "first")
    mine = tmp_path / "out" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(UserError, match=r"holds (sub|.*[a-z]), which is no part of an earlier report"):
        written(tmp_path / "out", "second")
    assert (mine.read_text(), (tmp_path / "out" / "index.html").read_text()) == ("mine", "first")


def test_a_damaged_marker_is_none(tmp_path):
    written(tmp_path / "out", "report")
    (tmp_path / "out" / MARKER).write_text("{}")
    with pytest.raises(UserError, match="holds data, which is no part"):
        check(tmp_path / "out")


def test_a_file_and_the_current_folder_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=r"--out .*file: is a file; expected a folder"):
        check(tmp_path / "file")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").unlink()
    with pytest.raises(UserError, match=r"--out \.: is the folder you are in; .*--out report"):
        check(Path())


def test_what_is_added_meanwhile_is_not_lost(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match=r"holds mine\.txt"), replaced(out):
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    assert (out / "mine.txt").read_text() == "mine"
    assert entries(tmp_path) == ["out"]


def test_a_full_disk_leaves_the_earlier_report(tmp_path):
    out = tmp_path / "out"
    written(out, "first")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(UserError, match=r"--out .*out: cannot be written: No space left.*untouched"), replaced(out):
        raise full
    assert (out / "index.html").read_text() == "first"
    assert entries(tmp_path) == ["out"]


def test_where_the_last_step_fails_the_earlier_report_comes_back(tmp_path, monkeypatch):
    out = tmp_path / "out"
    written(out, "first")
    rename = Path.rename

    def broken(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(UserError, match="a mount point cannot be replaced"):
        written(out, "second")
    assert (out / "index.html").read_text() == "first"
    assert entries(tmp_path) == ["out"]


def test_what_killed_processes_left_is_cleared(tmp_path):
    dead = 2**22 + 1  # beyond the highest process id
    out = tmp_path / "out"
    written(out, "first")
    (tmp_path / f".out.{dead}.part").mkdir()
    (tmp_path / ".out.backup").mkdir()
    out.rename(tmp_path / f".out.{dead}.before")
    with pytest.raises(RuntimeError), replaced(out):
        raise RuntimeError
    assert (out / "index.html").read_text() == "first"
    assert entries(tmp_path) == [".out.backup", "out"]
