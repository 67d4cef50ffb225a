"""The folder of a pass under way: whose it is, what may be in it, and what is left of it."""

import dataclasses
import logging
from pathlib import Path

import pytest

from neuroscope_jax.corpus.unfinished import unfinished
from neuroscope_jax.errors import UserError
from tests.features.measured import PROVENANCE


def left_half_done(folder: Path, name: str = "pass-1") -> None:
    """A pass that ended in the middle."""
    with pytest.raises(KeyError), unfinished(folder, name, PROVENANCE, restart=False):
        (folder / "state" / "3").mkdir(parents=True)
        (folder / "tokens.int32").write_bytes(b"1234")
        raise KeyError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "unfinished"


def test_a_finished_pass_leaves_nothing(folder: Path) -> None:
    with unfinished(folder, "pass-1", PROVENANCE, restart=False) as found:
        (found / "state").mkdir()
    assert not folder.exists()


def test_the_same_pass_goes_on(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    left_half_done(folder)
    with caplog.at_level(logging.INFO), unfinished(folder, "pass-1", PROVENANCE, restart=False):
        assert (folder / "state" / "3").exists()
    assert f"going on with the pass begun {PROVENANCE.made}" in caplog.text
    assert not folder.exists()


def test_another_pass_is_refused_and_told_apart(folder: Path) -> None:
    left_half_done(folder)
    other = dataclasses.replace(PROVENANCE, seed=7)
    told = r"pass of org/model-it .* seed 0, .*\[pass-1\]; this one is of .* seed 7, .*\[pass-2\].*--restart"
    with pytest.raises(UserError, match=told), unfinished(folder, "pass-2", other, restart=False):
        pass
    assert (folder / "state" / "3").exists()
    with unfinished(folder, "pass-2", other, restart=True):
        assert sorted(entry.name for entry in folder.iterdir()) == ["lock", "settings.json"]
    assert not folder.exists()


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_with_other_things_in_it_is_left_alone(folder: Path, restart: bool) -> None:
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("years of work")
    with (
        pytest.raises(UserError, match="holds thesis.tex, and no unfinished pass"),
        unfinished(folder, "pass-1", PROVENANCE, restart),
    ):
        pass
    assert (folder / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("restart", [False, True])
def test_settings_of_another_program_are_left_alone(folder: Path, restart: bool) -> None:
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text('{"editor.fontSize": 14}')
    with pytest.raises(UserError, match=r"settings\.json: "), unfinished(folder, "pass-1", PROVENANCE, restart):
        pass
    assert (folder / "settings.json").read_text() == '{"editor.fontSize": 14}'


def test_killed_while_the_settings_were_written(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".settings.json.4242.part").write_text('{"na')
    with unfinished(folder, "pass-1", PROVENANCE, restart=False):
        pass
    assert not folder.exists()


def test_one_process_at_a_time(folder: Path) -> None:
    with (
        unfinished(folder, "pass-1", PROVENANCE, restart=False),
        pytest.raises(UserError, match="another process is at work"),
        unfinished(folder, "pass-1", PROVENANCE, restart=True),
    ):
        pass
    assert not folder.exists()


def test_what_was_counted_is_kept_where_the_disk_is_full(folder: Path) -> None:
    told = "No space left.*run the same command again"
    with pytest.raises(UserError, match=told), unfinished(folder, "pass-1", PROVENANCE, restart=False):
        raise OSError(28, "No space left on device", "tokens.int32")
    assert (folder / "settings.json").exists()
