"""The folder of a report: written aside, then put in the place of the one before; nobody else's file is ever lost."""

import contextlib
import errno
import glob
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from neuroscope_jax.errors import UserError

MARKER = "neuroscope-report.json"
DATA = "data"
OF_DATA = re.compile(rf"{DATA}/(index|report|\d{{5,}})\.js")


class _Marker(msgspec.Struct):
    program: str
    made: str
    holds: list[str]  # names in the folder


def mark(folder: Path, program: str, made: str) -> None:
    """Say in the folder that it is a report, and what belongs to it."""
    holds = sorted([MARKER, *(path.name for path in folder.iterdir())])
    (folder / MARKER).write_bytes(msgspec.json.encode(_Marker(program, made, holds)) + b"\n")


def check(out: Path) -> None:
    """Raises UserError where a report cannot take this place: somebody else's files, the folder one is in, a file."""
    try:
        foreign = _foreign(out) if out.exists() else None
    except NotADirectoryError:
        raise UserError(f"--out {out}: is a file; expected a folder, new, empty or holding an earlier report") from None
    except OSError as error:
        raise UserError(f"--out {out}: cannot be read: {error.strerror}; name another folder") from error
    if Path.cwd().is_relative_to(out.resolve()):
        raise UserError(f"--out {out}: is the folder you are in; name a folder within it, as in --out {out / 'report'}")
    if foreign:
        raise UserError(
            f"--out {out}: holds {foreign}, which is no part of an earlier report; expected a folder that is new, "
            "empty or holds an earlier report and nothing else. Name another one, or move that away"
        )


@contextlib.contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A fresh folder to write to, which takes the place of `out` once the body is through.

    Where it fails, an earlier report stays as it is. Raises UserError where the disk is full or the place cannot be
    written.
    """
    check(out)
    place = out.resolve()
    aside, before = (place.with_name(f".{place.name}.{os.getpid()}.{what}") for what in ("part", "before"))
    try:
        _clear_leftovers(place)
        aside.mkdir(parents=True)
        yield aside
        check(out)  # minutes may have passed
        _swap(place, aside, before)
    except OSError as error:
        raise UserError(
            f"--out {out}: cannot be written: {_said(error)}; an earlier report there is untouched. "
            "Make room or name another place, then run the same command again"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if place.exists():
            shutil.rmtree(before, ignore_errors=True)


def _swap(place: Path, aside: Path, before: Path) -> None:
    if place.exists():
        place.rename(before)
    try:
        aside.rename(place)
    except OSError:
        if before.exists():
            before.rename(place)
        raise


def _clear_leftovers(place: Path) -> None:
    """Remove what killed processes left, and put back a report that one of them had just moved away."""
    for left in place.parent.glob(f".{glob.escape(place.name)}.*"):
        found = re.fullmatch(r"\.(\d+)\.(part|before)", left.name.removeprefix(f".{place.name}"))
        if not found or psutil.pid_exists(int(found[1])):
            continue
        if found[2] == "before" and not place.exists():
            left.rename(place)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _foreign(out: Path) -> str | None:
    """Something in the folder that no report put there; its first file, where it holds no report."""
    names = sorted(path.name for path in out.iterdir())
    own = _marked(out / MARKER)
    if names and not own:
        return names[0]
    inside = (path.relative_to(out).as_posix() for path in out.rglob("*"))
    return next((name for name in inside if name not in own and not OF_DATA.fullmatch(name)), None)


def _marked(marker: Path) -> list[str]:
    """The names in a report's folder as it says itself; none where this is no report's marker."""
    try:
        return msgspec.json.decode(marker.read_bytes(), type=_Marker).holds
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def _said(error: OSError) -> str:
    if error.errno in (errno.EBUSY, errno.EXDEV):
        return f"{error.strerror} (a mount point cannot be replaced: name a folder within it)"
    return error.strerror or str(error)
