"""Is a file what its name says? Told from its size and its first bytes, before anything large is read."""

import zipfile
from pathlib import Path

import msgspec
from safetensors import SafetensorError, safe_open

from neuroscope_jax.files import what_it_is

STRANGERS = ("a Git LFS pointer", "an HTML or XML page", "an empty file", "a folder", "not readable")


def problem(path: Path, size: int | None = None) -> str | None:
    """Why a file cannot be right, in words for a message; None where nothing speaks against it.

    `size` is what it should have, in bytes. Of a large file only the header or directory is read.
    """
    what = what_it_is(path)
    if what.startswith(STRANGERS):
        return what
    found = path.stat().st_size
    if size is not None and found != size:
        return f"not complete: {found:,} bytes, expected {size:,}"
    return None if _opens(path) else what


def _opens(path: Path) -> bool:
    try:
        match path.suffix:
            case ".safetensors":
                with safe_open(path, "np") as tensors:
                    return bool(tensors.keys())
            case ".npz":
                with zipfile.ZipFile(path) as archive:
                    return bool(archive.namelist())
            case ".json":
                msgspec.json.decode(path.read_bytes())
    except (SafetensorError, zipfile.BadZipFile, msgspec.DecodeError, RecursionError, OSError, ValueError):
        return False
    return True
