"""The checkpoint's files as the system keeps them: in memory or not."""

import os
import time
from pathlib import Path

BLOCK = 16 * 2**20  # bytes read at once


def evict(folder: Path) -> None:
    """Ask the system to keep none of the files in memory. Without effect where it takes no such advice."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in _files(folder):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_seconds(folder: Path) -> float:
    """How long it takes to read every byte once, one block after the other."""
    block = bytearray(BLOCK)
    began = time.perf_counter()
    for path in _files(folder):
        with path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass
    return time.perf_counter() - began


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())
