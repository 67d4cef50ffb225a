"""Tensors of a safetensors file, read from where they lie: 8 bytes of length, a JSON header, the data.

The library reads them too, but into memory that XLA would copy once more.
"""

import dataclasses
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import is_waited_for, what_it_is

HEADER_LIMIT = 100 << 20  # bytes; safetensors' own
ALIGNMENT = 64  # bytes; what lies so, XLA:CPU takes as it lies
KINDS = {"F32": np.dtype(np.float32), "F16": np.dtype(np.float16), "BF16": np.dtype(ml_dtypes.bfloat16)}


class _Entry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]  # bytes, from the end of the header


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies, and what its file says about it."""

    file: Path
    dtype: str  # safetensors' name, e.g. BF16
    shape: tuple[int, ...]
    start: int  # bytes from the beginning of the file
    end: int

    def read(self) -> np.ndarray:
        """The whole tensor, of one of KINDS, where XLA:CPU takes it as it lies. Raises UserError where it is cut short.

        Memory from NumPy comes in large pages where the system has them: the first touch of so much of it is otherwise
        most of what reading takes.
        """
        kind, size = KINDS[self.dtype], self.end - self.start
        room = np.empty(size + ALIGNMENT, np.uint8)
        begin = -room.ctypes.data % ALIGNMENT
        there = room[begin : begin + size]
        try:
            with self.file.open("rb") as file:
                file.seek(self.start)
                got = file.readinto(there.data)
        except OSError as error:
            raise UserError(f"{self.file}: cannot be read: {error.strerror}") from error
        if got != size:
            raise UserError(f"{self.file}: {got} of {size} bytes of a tensor are there; fetch the file again")
        tensor: np.ndarray = there.view(kind).reshape(self.shape)
        return tensor


def tensors(path: Path) -> dict[str, StoredTensor]:
    """Every tensor of a file by its key. Raises UserError for what is no safetensors file."""
    if is_waited_for(path):
        raise UserError(f"{path}: {what_it_is(path)}, expected safetensors")
    try:
        return _tensors(path)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UserError(f"{path}: {what_it_is(path)}, expected safetensors ({error})") from error


def _tensors(path: Path) -> dict[str, StoredTensor]:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(HEADER_LIMIT, size):
            raise ValueError("no header")
        header = msgspec.json.decode(file.read(length), type=dict[str, Any])
    header.pop("__metadata__", None)
    found = {}
    for key, entry in msgspec.convert(header, dict[str, _Entry]).items():
        start, end = (8 + length + offset for offset in entry.data_offsets)
        if not 8 + length <= start <= end <= size or min(entry.shape, default=0) < 0:
            raise ValueError(f"{key} is said to lie at {entry.data_offsets}")
        found[key] = StoredTensor(path, entry.dtype, entry.shape, start, end)
    return found
