"""Files: checked JSON that strangers wrote, what a file really is, and results that are written whole or not at all."""

import contextlib
import errno
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import psutil

from neuroscope_jax.errors import UserError

T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    """The file as a value of `kind`, a msgspec Struct say. Raises UserError naming the file and the field."""
    if is_waited_for(path):
        raise UserError(f"{path}: {what_it_is(path)}, expected JSON")
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: {error}") from error
    except RecursionError as error:
        raise UserError(f"{path}: nested too deeply to be read") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); it is {what_it_is(path)}") from error


@contextlib.contextmanager
def set_aside(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Names beside `paths` to write to; when all is written they are renamed to them, in order.

    Where the body fails, what was at `paths` stays as it was. Raises UserError where the disk is full or a folder
    cannot be written.
    """
    asides = tuple(path.with_name(f".{path.name}.{os.getpid()}.part") for path in paths)
    try:
        for path in paths:
            check_place(path)
        yield asides
        for aside in asides:
            _to_disk(aside)
        for aside, path in zip(asides, paths, strict=True):
            aside.replace(path)
    except OSError as error:
        raise UserError(
            f"{paths[-1]}: cannot be written: {error.strerror or error}; what was there before is untouched. "
            "Make room or name another place, then run the same command again"
        ) from error
    finally:
        for aside in asides:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_set_aside(path: Path) -> Iterator[Path]:
    """A new folder beside `path` to write to, which takes the place of whatever is at `path` when all is written.

    Where the body fails, what was at `path` stays as it was. Raises OSError where it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in _left_behind(path):
        shutil.rmtree(left, ignore_errors=True)
    # The random part: in containers that share a folder, every process may have the same id.
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.{os.getpid()}.part")
    aside.mkdir()
    try:
        yield aside
        for file in aside.rglob("*"):
            if file.is_file():
                _to_disk(file)
        shutil.rmtree(path, ignore_errors=True)
        aside.replace(path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def check_place(path: Path) -> None:
    """Raises OSError where no file can be written at `path`; removes what killed processes left of earlier tries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    trial = path.with_name(f".{path.name}.{os.getpid()}.part")
    trial.touch()
    trial.unlink()
    for left in _left_behind(path):
        left.unlink(missing_ok=True)


def _left_behind(path: Path) -> Iterator[Path]:
    """What processes that are no more put aside for `path`."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        pid = left.name.split(".")[-2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            yield left


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def is_waited_for(path: Path) -> bool:
    """Whether opening it could wait for ever: a pipe or a device."""
    return path.exists() and not (path.is_file() or path.is_dir())


def what_it_is(path: Path) -> str:
    """A few words for a message: an empty file, a Git LFS pointer, an HTML page, or a damaged file and its size."""
    if path.is_dir():
        return "a folder"
    if is_waited_for(path):
        return "a pipe or a device"
    try:
        with path.open("rb") as file:
            start = file.read(64).lstrip()
    except OSError as error:
        return f"not readable ({error.strerror})"
    if not start:
        return "an empty file"
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself (cloned without `git lfs pull`)"
    if start.startswith(b"<"):
        return "an HTML or XML page (a login or error page saved in its place)"
    return f"damaged or not complete ({path.stat().st_size:,} bytes; an interrupted download?)"
