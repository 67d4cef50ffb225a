"""Readers of SAE files, one function a format, and the registry that picks one.

Adding a format: write `read_…(path) -> EncoderWeights` and add its line to READERS.
"""

import dataclasses
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import jax
import numpy as np

from neuroscope_jax.config import InputNorm
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import what_it_is
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
    path: Path, d_model: int, input_norm: InputNorm = "auto", sharding: jax.sharding.Sharding | None = None
) -> SparseAutoencoder:
    """Read an SAE file and put its encoder on the default device or `sharding`.

    Raises UserError for an unknown format, a broken file, or an SAE of another model's width.
    """
    weights = _reader(path)(path)
    if weights.W_enc.shape[0] != d_model:
        raise UserError(
            f"{path}: W_enc is {_shape(weights.W_enc.shape)}, so this SAE reads vectors of {weights.W_enc.shape[0]}, "
            f"but the model's residual stream has {d_model}; choose an SAE made for this model"
        )
    norm = weights.input_norm if input_norm == "auto" else input_norm
    if norm == "scalar" and weights.input_scale is None:
        raise UserError(f"--sae-input-norm scalar: {path} carries no scalar; use auto, none or rms")
    return SparseAutoencoder(
        encoder_rows=jax.device_put(np.ascontiguousarray(weights.W_enc.T), sharding),
        b_enc=jax.device_put(weights.b_enc, sharding),
        threshold=jax.device_put(weights.threshold, sharding),
        input_scale=jax.device_put(np.float32(weights.input_scale or 1.0), sharding),
        input_norm=norm,
    )


def read_gemma_scope(path: Path) -> EncoderWeights:
    """Gemma Scope's params.npz: W_enc, W_dec, b_enc, b_dec, threshold. Takes raw residuals (its paper, App. A)."""
    try:
        with zipfile.ZipFile(path) as archive:
            headers = {name.removesuffix(".npy"): _header(archive, name) for name in archive.namelist()}
            _check_headers(path, headers)
            read = {name: _array(archive, name) for name in ("W_enc", "b_enc", "threshold")}
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such SAE file; check --sae-path or --sae-local-path") from error
    except (*DAMAGE, OSError) as error:
        raise UserError(f"{path}: {what_it_is(path)}, expected a Gemma Scope params.npz; download it again") from error
    for name, array in read.items():
        if not np.isfinite(array).all():
            raise UserError(f"{path}: {name} holds values that are not finite; download it again")
    return EncoderWeights(read["W_enc"], read["b_enc"], read["threshold"])


READERS: dict[str, Callable[[Path], EncoderWeights]] = {
    ".npz": read_gemma_scope,
}

# What the archive, its compression and NumPy's header parser raise for bytes that are not what they were.
DAMAGE = (zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError, ValueError, EOFError, RuntimeError)


def _reader(path: Path) -> Callable[[Path], EncoderWeights]:
    try:
        return READERS[path.suffix]
    except KeyError:
        raise UserError(f"{path}: unknown SAE format; known endings: {', '.join(READERS)}") from None


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of an array in the archive, from its first bytes only."""
    with archive.open(name) as member:
        read = np.lib.format.read_array_header_1_0 if np.lib.format.read_magic(member) == (1, 0) else None
        shape, _, dtype = read(member) if read else np.lib.format.read_array_header_2_0(member)
    return shape, dtype


def _check_headers(path: Path, headers: dict[str, tuple[tuple[int, ...], np.dtype]]) -> None:
    wanted = ("W_enc", "W_dec", "b_enc", "b_dec", "threshold")
    missing = [name for name in wanted if name not in headers]
    if missing:
        raise UserError(f"{path}: no {', '.join(missing)} in it; found {', '.join(headers) or 'nothing'}")
    if len(headers["W_enc"][0]) != 2:
        raise UserError(f"{path}: W_enc is {_shape(headers['W_enc'][0])}, expected [d_in, d_sae]")
    d_in, d_sae = headers["W_enc"][0]
    shapes = {
        "W_enc": (d_in, d_sae),
        "W_dec": (d_sae, d_in),
        "b_enc": (d_sae,),
        "b_dec": (d_in,),
        "threshold": (d_sae,),
    }
    for name in wanted:
        shape, dtype = headers[name]
        if shape != shapes[name]:
            raise UserError(f"{path}: {name} is {_shape(shape)}, expected {_shape(shapes[name])} from W_enc and d_sae")
        if dtype.kind != "f":
            raise UserError(f"{path}: {name} is {dtype}, expected floating-point numbers")


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(f"{name}.npy") as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is named as such
        return array.astype(np.float32, copy=False)


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(n) for n in shape) + "]"
