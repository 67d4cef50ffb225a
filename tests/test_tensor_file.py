"""Tensors read from where they lie, beside the library's own reading."""

import json
import os
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from neuroscope_jax.errors import UserError
from neuroscope_jax.tensor_file import tensors

STORED = {
    "odd": np.arange(3, dtype=np.float32),
    "half": np.arange(24, dtype=np.float16).reshape(2, 3, 4),
    "brain": np.arange(10, dtype=ml_dtypes.bfloat16).reshape(5, 2),
    "none": np.zeros((0, 4), np.float32),
    "one": np.array(7, np.float32),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_file(STORED, tmp_path / "a.safetensors", metadata={"format": "pt"})
    return tmp_path / "a.safetensors"


def test_every_tensor_is_as_it_was_saved(file: Path) -> None:
    found = tensors(file)
    assert set(found) == set(STORED)
    for key, expected in STORED.items():
        read = found[key].read()
        assert (read.dtype, read.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(read, expected)


def test_xla_takes_it_as_it_lies(file: Path) -> None:
    read = tensors(file)["half"].read()
    placed = jax.device_put(read, jax.devices("cpu")[0])
    assert placed.unsafe_buffer_pointer() == read.ctypes.data


def test_a_file_that_is_cut_short_meanwhile_is_told(file: Path) -> None:
    found = tensors(file)
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(
        UserError, match=r"a\.safetensors: \d+ of \d+ bytes of a tensor are there; fetch the file again"
    ):
        for tensor in found.values():
            tensor.read()


@pytest.mark.parametrize("offsets", [[-4, 8], [8, 4], [0, 1 << 40], [1 << 62, 1 << 63], [0.5, 8]])
def test_places_outside_the_file_are_told(tmp_path: Path, offsets: list[float]) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": offsets}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
    with pytest.raises(UserError, match=r"a\.safetensors: .*expected safetensors"):
        tensors(tmp_path / "a.safetensors")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.safetensors")
    with pytest.raises(UserError, match="a pipe or a device, expected safetensors"):
        tensors(tmp_path / "a.safetensors")


def test_a_file_that_is_gone_meanwhile_is_told(file: Path) -> None:
    found = tensors(file)
    file.unlink()
    with pytest.raises(UserError, match=r"a\.safetensors: cannot be read: No such file"):
        found["half"].read()


@pytest.mark.parametrize("content", [b"", b"1234567", bytes(8), b"\xff" * 64, (5).to_bytes(8, "little") + b"[1,2]"])
def test_what_is_no_such_file_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.safetensors: .*expected safetensors"):
        tensors(tmp_path / "a.safetensors")
