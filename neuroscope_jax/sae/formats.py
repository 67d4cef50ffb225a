"""Readers of SAE files, three functions a format, and the registry that picks them.

Adding a format: write `read_…(path) -> EncoderWeights`, `…_decoder_rows(path, features)` and `…_width(path)`, and its
line in READERS.
"""

import contextlib
import dataclasses
import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuroscope_jax.config import InputNorm
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import is_waited_for, what_it_is
from neuroscope_jax.models.sharding import Placement
from neuroscope_jax.sae.autoencoder import SparseAutoencoder


@dataclasses.dataclass(frozen=True)
class EncoderWeights:
    """What a reader returns: float32 arrays in the papers' orientation, and what the release says of its input."""

    W_enc: np.ndarray  # [d_in, d_sae]
    b_enc: np.ndarray  # [d_sae]
    threshold: np.ndarray  # [d_sae]
    input_norm: Literal["none", "rms", "scalar"] = "none"
    input_scale: float | None = None  # the divisor, where input_norm is or may be "scalar"


def load_sae(
    path: Path, d_model: int, input_norm: InputNorm = "auto", placement: Placement | None = None
) -> SparseAutoencoder:
    """Read an SAE file and put its encoder on the default device or `placement`.

    Raises UserError for an unknown format, a broken file, or an SAE of another model's width.
    """
    weights = _format(path).encoder(path)
    if weights.W_enc.shape[0] != d_model:
        raise UserError(
            f"{path}: W_enc is {_shape(weights.W_enc.shape)}, so this SAE reads vectors of {weights.W_enc.shape[0]}, "
            f"but the model's residual stream has {d_model}; choose an SAE made for this model"
        )
    norm = weights.input_norm if input_norm == "auto" else input_norm
    if norm == "scalar" and weights.input_scale is None:
        raise UserError(f"--sae-input-norm scalar: {path} carries no scalar; use auto, none or rms")
    arrays: dict[str, np.ndarray | jax.Array] = {
        "encoder_rows": _turned(weights.W_enc, placement),
        "b_enc": weights.b_enc,
        "threshold": weights.threshold,
        "input_scale": np.asarray(weights.input_scale or 1.0, np.float32),
    }
    placed = {
        name: jax.device_put(array, None if placement is None else placement((name,), array.shape))
        for name, array in arrays.items()
    }
    return SparseAutoencoder(**placed, input_norm=norm)


def _turned(W_enc: np.ndarray, placement: Placement | None) -> np.ndarray | jax.Array:
    """XLA:CPU does it five times as fast as NumPy; elsewhere the device would hold it twice."""
    if placement is None and jax.default_backend() == "cpu":
        return jnp.asarray(W_enc).T
    return np.ascontiguousarray(W_enc.T)


def decoder_rows(path: Path, features: Sequence[int]) -> Float[np.ndarray, "n d_in"]:
    """The rows of W_dec of these features, in their order, float32; of the rest only a few MB are held at a time.

    Raises UserError for an unknown format, a broken file, values that are not finite, or a feature that is not there.
    """
    return _format(path).decoder_rows(path, features)


def width_of_file(path: Path) -> int:
    """Features of an SAE file, which is not read for it. Raises UserError for an unknown format or a broken file."""
    return _format(path).width(path)


def read_gemma_scope(path: Path) -> EncoderWeights:
    """Gemma Scope's params.npz: W_enc, W_dec, b_enc, b_dec, threshold. Takes raw residuals (its paper, App. A)."""
    with _gemma_scope(path) as (archive, _):
        read = {name: _array(archive, name) for name in ("W_enc", "b_enc", "threshold")}
    for name, array in read.items():
        _check_finite(path, name, array)
    return EncoderWeights(read["W_enc"], read["b_enc"], read["threshold"])


def gemma_scope_decoder_rows(path: Path, features: Sequence[int]) -> Float[np.ndarray, "n d_in"]:
    """Those of params.npz, which keeps W_dec as [d_sae, d_in]."""
    with _gemma_scope(path) as (archive, headers):
        shape = headers["W_dec"].shape
        strange = [feature for feature in features if not 0 <= feature < shape[0]]
        if strange:
            raise UserError(f"{path}: no feature {strange[0]} in it; it has features 0 to {shape[0] - 1}")
        rows = _rows(archive, "W_dec", np.asarray(features, np.int64))
    _check_finite(path, "W_dec", rows)
    return rows


def gemma_scope_width(path: Path) -> int:
    """That of params.npz, from the header of its smallest array that tells."""
    with _archive(path) as archive:
        if "b_enc.npy" not in archive.namelist():
            raise UserError(f"{path}: no b_enc in it; found {', '.join(archive.namelist()) or 'nothing'}")
        with archive.open("b_enc.npy") as member:
            shape = _header(member).shape
    if len(shape) != 1:
        raise UserError(f"{path}: b_enc is {_shape(shape)}, expected [d_sae]")
    return int(shape[0])


class Format(NamedTuple):
    """What can be read from a file of one format."""

    encoder: Callable[[Path], EncoderWeights]
    decoder_rows: Callable[[Path, Sequence[int]], Float[np.ndarray, "n d_in"]]
    width: Callable[[Path], int]


READERS = {
    ".npz": Format(read_gemma_scope, gemma_scope_decoder_rows, gemma_scope_width),
}

PIECE = 4 << 20  # bytes of a matrix held at a time while a few of its rows are read

# What the archive, its compression and NumPy's header parser raise for bytes that are not what they were.
DAMAGE = (zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError, ValueError, EOFError, RuntimeError)


def _format(path: Path) -> Format:
    try:
        return READERS[path.suffix]
    except KeyError:
        raise UserError(f"{path}: unknown SAE format; known endings: {', '.join(READERS)}") from None


@runtime_checkable
class _Member(Protocol):
    """An open file of the archive."""

    def read(self, size: int = -1, /) -> bytes: ...


class _Header(NamedTuple):
    """What a .npy says of its array before the content."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype


@contextlib.contextmanager
def _gemma_scope(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, _Header]]]:
    """The archive and the headers of what is in it, checked. Raises UserError for damage met in the body too."""
    with _archive(path) as archive:
        headers = {}
        for name in archive.namelist():
            with archive.open(name) as member:
                headers[name.removesuffix(".npy")] = found = _header(member)
            claimed = math.prod(found.shape) * found.dtype.itemsize
            if claimed > archive.getinfo(name).file_size and not found.dtype.hasobject:
                raise EOFError(f"{name} is shorter than its header says")
        _check_headers(path, headers)
        yield archive, headers


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The open archive. Raises UserError for damage met in the body too."""
    if is_waited_for(path):
        raise UserError(f"{path}: {what_it_is(path)}, expected a Gemma Scope params.npz")
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such SAE file; check --sae-path or --sae-local-path") from error
    except MemoryError as error:
        raise UserError(f"{path}: larger than this machine's memory ({error})") from error
    except (*DAMAGE, OSError) as error:
        raise UserError(
            f"{path}: {what_it_is(path)}, expected a Gemma Scope params.npz; download it again "
            "(`neuroscope_jax sae pull` replaces a damaged file in the cache)"
        ) from error


def _header(member: _Member) -> _Header:
    """Of the array in an open member, whose content comes next."""
    read = np.lib.format.read_array_header_1_0 if np.lib.format.read_magic(member) == (1, 0) else None
    return _Header(*(read(member) if read else np.lib.format.read_array_header_2_0(member)))


def _check_headers(path: Path, headers: dict[str, _Header]) -> None:
    wanted = ("W_enc", "W_dec", "b_enc", "b_dec", "threshold")
    missing = [name for name in wanted if name not in headers]
    if missing:
        raise UserError(f"{path}: no {', '.join(missing)} in it; found {', '.join(headers) or 'nothing'}")
    biases = {name: headers[name].shape for name in ("b_enc", "b_dec")}
    for name, shape in biases.items():
        if len(shape) != 1:
            raise UserError(f"{path}: {name} is {_shape(shape)}, expected one dimension")
    (d_sae,), (d_in,) = biases.values()
    expected = {"W_enc": (d_in, d_sae), "W_dec": (d_sae, d_in), "threshold": (d_sae,)}
    for name, shape in expected.items():
        _check_shape(path, name, headers[name].shape, shape)
    for name in wanted:
        if headers[name].dtype.kind != "f":
            raise UserError(f"{path}: {name} is {headers[name].dtype}, expected floating-point numbers")


def _check_shape(path: Path, name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if found == expected:
        return
    turned = ": it is transposed" if found == expected[::-1] else ""
    raise UserError(
        f"{path}: {name} is {_shape(found)}, expected {_shape(expected)} by the lengths of b_enc and b_dec{turned}; "
        "choose a file in Gemma Scope's layout"
    )


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(f"{name}.npy") as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is named as such
        return array.astype(np.float32, copy=False)


def _rows(archive: zipfile.ZipFile, name: str, wanted: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d_in"]:
    """Rows of a matrix, of which PIECE bytes are held at a time; read to its end, where the archive checks its CRC."""
    with archive.open(f"{name}.npy") as member:
        (rows, columns), fortran_order, dtype = _header(member)
        found = np.empty((len(wanted), columns), dtype)
        lines, length = (columns, rows) if fortran_order else (rows, columns)
        step = max(1, PIECE // (length * dtype.itemsize))
        for at in range(0, lines, step):
            piece = np.frombuffer(_exactly(member, min(step, lines - at) * length * dtype.itemsize), dtype)
            piece = piece.reshape(-1, length)
            if fortran_order:
                found[:, at : at + len(piece)] = piece[:, wanted].T
            else:
                here = (wanted >= at) & (wanted < at + len(piece))
                found[here] = piece[wanted[here] - at]
        if member.read(1):
            raise ValueError("longer than its header says")
    with np.errstate(over="ignore"):
        return found.astype(np.float32, copy=False)


def _exactly(member: _Member, size: int) -> bytes:
    """`size` bytes. Raises EOFError where there are fewer."""
    content = member.read(size)
    if len(content) < size:
        raise EOFError(f"{size - len(content)} bytes are missing")
    return content


def _check_finite(path: Path, name: str, array: np.ndarray) -> None:
    if not np.isfinite(array).all():
        raise UserError(f"{path}: {name} holds values that are not finite; download it again")


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(n) for n in shape) + "]"
