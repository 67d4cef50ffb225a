"""Results are written whole or not at all."""

import os
from pathlib import Path

import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json, set_aside


@pytest.fixture
def earlier(tmp_path: Path) -> tuple[Path, Path]:
    """Two files of an earlier result."""
    paths = tmp_path / "a.parquet", tmp_path / "b.json"
    for path in paths:
        path.write_text("earlier")
    return paths


def test_all_are_renamed_when_all_are_written(earlier: tuple[Path, Path]) -> None:
    with set_aside(*earlier) as asides:
        for aside in asides:
            aside.write_text("new")
        assert [path.read_text() for path in earlier] == ["earlier", "earlier"]
    assert [path.read_text() for path in earlier] == ["new", "new"]
    assert sorted(earlier[0].parent.iterdir()) == sorted(earlier)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyError("bug")])
def test_where_the_second_fails_the_first_stays_too(earlier: tuple[Path, Path], error: Exception) -> None:
    kind = UserError if isinstance(error, OSError) else KeyError
    told = "No space left on device; what was there before is untouched|bug"
    with pytest.raises(kind, match=told), set_aside(*earlier) as (first, _):
        first.write_text("new")
        raise error
    assert [path.read_text() for path in earlier] == ["earlier", "earlier"]
    assert sorted(earlier[0].parent.iterdir()) == sorted(earlier)


def test_a_disk_that_is_full_only_at_the_end(earlier: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    told = r"b\.json: cannot be written: No space left on device"
    with pytest.raises(UserError, match=told), set_aside(*earlier) as asides:
        for aside in asides:
            aside.write_text("new")
    assert [path.read_text() for path in earlier] == ["earlier", "earlier"]


def test_folders_are_made_and_a_file_in_their_place_is_named(tmp_path: Path) -> None:
    with set_aside(tmp_path / "new" / "folder" / "a.json") as (aside,):
        aside.write_text("new")
    assert (tmp_path / "new" / "folder" / "a.json").read_text() == "new"
    inside_a_file = tmp_path / "new" / "folder" / "a.json" / "b.json"
    with pytest.raises(UserError, match="cannot be written"), set_aside(inside_a_file):
        pass


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(UserError, match="a pipe or a device, expected JSON"):
        read_json(tmp_path / "config.json", dict)
