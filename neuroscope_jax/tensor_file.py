"""What lies where in a safetensors file: 8 bytes of length, a JSON header, the data.

The library reads tensors, but does not say where they are, and its arrays lie where XLA has to copy them once more.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import what_it_is

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
        kind = KINDS[self.dtype]
        size = math.prod(self.shape) * kind.itemsize
        room = np.empty(size + ALIGNMENT, np.uint8)
        begin = -room.ctypes.data % ALIGNMENT
        there = room[begin : begin + size]
        with self.file.open("rb") as file:
            file.seek(self.start)
            got = file.readinto(there.data)
        if got != size or self.start + size != self.end:
            raise UserError(
                f"{self.file}: {got} of {size} bytes of a tensor {self.shape} are there; fetch the file again"
            )
        tensor: np.ndarray = there.view(kind).reshape(self.shape)
        return tensor


def tensors(path: Path) -> dict[str, StoredTensor]:
    """Every tensor of a file by its key. Raises UserError for what is no safetensors file."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(HEADER_LIMIT, path.stat().st_size):
                raise ValueError("no header")
            header = msgspec.json.decode(file.read(length), type=dict[str, Any])
        header.pop("__metadata__", None)
        entries = msgspec.convert(header, dict[str, _Entry])
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise UserError(f"{path}: {what_it_is(path)}, expected safetensors ({error})") from error
    data = 8 + length
    return {
        key: StoredTensor(path, entry.dtype, entry.shape, *(data + offset for offset in entry.data_offsets))
        for key, entry in entries.items()
    }
