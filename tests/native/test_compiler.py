"""Compiling the kernels where that fails, where nothing can be written, and where what was kept is broken."""

import shutil
from pathlib import Path

import jax
import pytest

from neuroscope_jax.native import compiler


def copied(folder: Path) -> Path:
    for path in (compiler.SOURCE, *compiler.SOURCE.parent.glob("*.h")):
        shutil.copy(path, folder)
    return folder / compiler.SOURCE.name


def test_a_source_that_does_not_compile_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "kernels.cc"
    source.write_text("this is no C++")
    monkeypatch.setattr(compiler, "SOURCE", source)
    with pytest.raises(compiler.Unavailable, match="error"):
        compiler.library(jax.ffi.include_dir())
    assert not list((tmp_path / "__pycache__").iterdir())


@pytest.mark.usefixtures("native")
def test_read_only_source_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache folder takes the library where the package's own folder cannot be written."""
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "cache"))
    source = copied(tmp_path)
    monkeypatch.setattr(compiler, "SOURCE", source)
    (tmp_path / "__pycache__").write_text("a file where the folder would be")
    assert compiler.library(jax.ffi.include_dir()).neuroscope_product
    assert [path.suffix for path in (tmp_path / "cache" / "native").iterdir()] == [".so"]


@pytest.mark.usefixtures("native")
def test_a_library_cut_short_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = copied(tmp_path)
    monkeypatch.setattr(compiler, "SOURCE", source)
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-O1"))  # quicker
    headers = jax.ffi.include_dir()
    made = tmp_path / "__pycache__" / compiler._name(compiler._compiler(), headers)
    made.parent.mkdir()
    made.write_bytes(b"\x7fELF")
    assert compiler.library(headers).neuroscope_product
    assert made.stat().st_size > 1000
