"""Compiling the kernels where that fails, where nothing can be written, and where what was kept is broken."""

import ctypes
import os
import shutil
from pathlib import Path

import jax
import psutil
import pytest

from neuroscope_jax.native import compiler, library
from neuroscope_jax.native.library import KERNELS


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder."""
    for path in (*compiler.SOURCES.glob("*.cc"), *compiler.SOURCES.glob("*.h")):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(compiler, "SOURCES", tmp_path)
    monkeypatch.setattr(compiler, "COMPUTING", "-O1")  # quicker
    return tmp_path


def test_a_source_that_does_not_compile_leaves_nothing_behind(sources: Path) -> None:
    (sources / KERNELS[1]).write_text("this is no C++")
    with pytest.raises(compiler.Unavailable, match="error"):
        library.library(KERNELS)
    assert not list((sources / "__pycache__").iterdir())


@pytest.mark.usefixtures("native")
def test_read_only_source_folder(monkeypatch: pytest.MonkeyPatch, sources: Path) -> None:
    """The cache folder takes the library where the package's own folder cannot be written."""
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(sources / "cache"))
    (sources / "__pycache__").write_text("a file where the folder would be")
    assert library.library(KERNELS).neuroscope_product
    assert [path.suffix for path in (sources / "cache" / "native").iterdir()] == [".so"]


@pytest.mark.usefixtures("native")
def test_a_library_cut_short_is_made_anew(sources: Path) -> None:
    made = sources / "__pycache__" / library._name(KERNELS, compiler.compiler())
    made.parent.mkdir()
    made.write_bytes(b"\x7fELF")
    assert library.library(KERNELS).neuroscope_product
    assert made.stat().st_size > 1000


def test_the_headers_are_those_of_jax() -> None:
    assert compiler._headers() == jax.ffi.include_dir()


@pytest.mark.usefixtures("native")
def test_what_is_begun_ahead_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks later waits for it, and is told the same."""
    asked: list[str] = []

    def fails(sources: library.Sources) -> ctypes.CDLL:
        asked.append(sources[0])
        raise compiler.Unavailable("nowhere")

    monkeypatch.setattr(library, "library", fails)
    library.begin.cache_clear()
    first, second = library.begin(KERNELS), library.begin(KERNELS)
    for future in (first, second):
        with pytest.raises(compiler.Unavailable, match="nowhere"):
            future.result()
    library.begin.cache_clear()
    assert asked == [KERNELS[0]]


def test_what_hangs_is_given_up_with_all_it_started(
    monkeypatch: pytest.MonkeyPatch, sources: Path, tmp_path: Path
) -> None:
    """A compiler is a driver that starts others, which hold its pipes."""
    driver, started = tmp_path / "driver", tmp_path / "started"
    driver.write_text(f"#!/bin/sh\nsleep 60 &\necho $! >> {started}\nwait\n")
    driver.chmod(0o755)
    monkeypatch.setenv("CXX", str(driver))
    monkeypatch.setattr(compiler, "PATIENCE", 0.5)
    with pytest.raises(compiler.Unavailable, match="did not finish"):
        library.library(KERNELS)
    assert not list((sources / "__pycache__").iterdir())
    pids = [int(pid) for pid in started.read_text().split()]
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=5)
    assert pids
    # Whoever has adopted it may not have looked after it yet.
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in alive)


@pytest.mark.usefixtures("native")
def test_what_was_cut_short_is_swept_away(sources: Path) -> None:
    old, young = (sources / "__pycache__" / f"{library.SCRATCH}{age}" for age in ("old", "young"))
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    library.library(KERNELS)
    assert not old.exists()
    assert young.exists()
