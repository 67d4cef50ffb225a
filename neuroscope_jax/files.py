"""Reading files that strangers wrote: checked JSON, and what a file really is where it is not what its name says."""

from pathlib import Path
from typing import TypeVar

import msgspec

from neuroscope_jax.errors import UserError

T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    """The file as a value of `kind`, a msgspec Struct say. Raises UserError naming the file and the field."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); it is {what_it_is(path)}") from error


def what_it_is(path: Path) -> str:
    """A few words for a message: an empty file, a Git LFS pointer, an HTML page, or a damaged file and its size."""
    if path.is_dir():
        return "a folder"
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
