"""Weights between Hugging Face safetensors files and the module's parameter tree.

`model.layers.3.self_attn.q_proj.weight` is params["layers_3"]["self_attn"]["q_proj"]["weight"], in the same layout.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import flax.linen as nn
import flax.traverse_util
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jax.typing import DTypeLike
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from neuroscope_jax.config import Quantization
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import is_waited_for, read_json, what_it_is
from neuroscope_jax.models.hub_cache import INDEX, SINGLE
from neuroscope_jax.models.quantized import QuantizedWeight, quantize
from neuroscope_jax.models.registry import read_config
from neuroscope_jax.models.sharding import Placement
from neuroscope_jax.native import products
from neuroscope_jax.tensor_file import KINDS, StoredTensor, tensors

Params = dict[str, Any]  # nested: module names, then "weight"

READERS = 4  # tensors at a time
SHOWN = 3  # keys named of each kind of misfit


@dataclasses.dataclass(frozen=True)
class Table:
    """A matrix of a checkpoint that is read a few rows at a time."""

    file: Path
    key: str
    shape: tuple[int, ...]

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        """Its rows in lots of `size`, as precise as the file has them; the last lot is smaller."""
        for at in range(0, self.shape[0], size):
            with safe_open(self.file, "np") as opened:  # anew each time: its pages count as this process's
                block: np.ndarray = opened.get_slice(self.key)[at : min(at + size, self.shape[0])]
            yield block


class Index(msgspec.Struct):
    """model.safetensors.index.json: which shard holds which tensor."""

    weight_map: dict[str, str]


def load_weights(
    folder: Path,
    model: nn.Module,
    dtype: DTypeLike,
    part: nn.Module | None = None,
    placement: Placement | None = None,
    compact: bool = False,
    quantization: Quantization = "none",
) -> Params:
    """Read a checkpoint into the "params" tree of `model`, every leaf in `dtype` on the default device or `placement`.

    `compact` leaves bfloat16 as it is stored, whatever `dtype`; see `may_be_compact`. `part` is `model` without its
    later blocks: the checkpoint is checked whole, and only what `part` runs is read. `quantization` makes of every
    matrix a QuantizedWeight, whatever `dtype`.

    A few tensors at a time are read, moved and cast, so at no time is there a second copy of the model; of a tensor
    that is split each device gets its part only. bfloat16 to bfloat16 keeps every bit. Raises UserError naming the keys
    that are missing, unmatched, of a wrong shape or type, and any file that is not what it should be.
    """
    needed = expected_shapes(model) if part is None else expected_shapes(part, "__call__")
    return _load(_checked(folder, model), needed, dtype, placement, compact, quantization)


def loaded_shapes(
    folder: Path, model: nn.Module, dtype: DTypeLike, placement: Placement | None = None, compact: bool = False
) -> Params:
    """What `load_weights` will make of a checkpoint, its leaves shapes with dtype and place; refuses what it would."""

    def shape_of(key: str, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
        sharding = None if placement is None else placement(tree_path(key), shape)
        return jax.ShapeDtypeStruct(shape, _dtype_of(stored[key], dtype, compact), sharding=sharding)

    stored = _checked(folder, model)
    leaves = {tree_path(key): shape_of(key, shape) for key, shape in expected_shapes(model).items()}
    shapes: Params = flax.traverse_util.unflatten_dict(leaves)
    return shapes


def may_be_compact(folder: Path, rows: int = 1) -> bool:
    """Whether a checkpoint's weights can stay bfloat16 under float32 arithmetic: nothing is lost, and half is read.

    `rows`: of x that will mostly be multiplied together; XLA would first write the weights out in float32.
    """
    stored = {entry.dtype for entry in _stored(folder).values()}  # first: it tells what is amiss with the files
    return stored == {"BF16"} and products.takes(rows, "float32", "bfloat16")


def load_unembedding(folder: Path, model: nn.Module) -> tuple[Params, Table]:
    """What `logits` touches: its small parameters, float32 on the default device, and its table, which stays on disk.

    The checkpoint is checked as in `load_weights`.
    """
    stored, table = _checked(folder, model), hf_key(model.UNEMBEDDING)
    small = {key: shape for key, shape in expected_shapes(model, "logits").items() if key != table}
    return _load(stored, small, jnp.float32), Table(stored[table].file, table, stored[table].shape)


def save_weights(params: Params, path: Path, dtype: DTypeLike | None = None) -> None:
    """Write a "params" tree to one safetensors file under Hugging Face names, cast to `dtype` where given."""
    leaves = flax.traverse_util.flatten_dict(params)
    named = {hf_key(name): np.asarray(leaf if dtype is None else leaf.astype(dtype)) for name, leaf in leaves.items()}
    save_file(named, path, metadata={"format": "pt"})


def hf_key(path: tuple[str, ...]) -> str:
    """("layers_3", "mlp", "up_proj", "weight") → model.layers.3.mlp.up_proj.weight."""
    return "model." + ".".join(path).replace("layers_", "layers.")


def tree_path(key: str) -> tuple[str, ...]:
    """The inverse of `hf_key`."""
    return tuple(key.removeprefix("model.").replace("layers.", "layers_").split("."))


@functools.lru_cache(maxsize=8)
def expected_shapes(model: nn.Module, method: str = "scores") -> Mapping[str, tuple[int, ...]]:
    """Shape of every parameter that `method` touches by its Hugging Face key, found without computing anything."""
    ids = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    residual = jax.ShapeDtypeStruct((1, 1, model.config.hidden_size), jnp.float32)
    inputs = (residual,) if method == "logits" else (ids, ids)
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    tree = jax.eval_shape(lambda *args: model.init(*args, method=method)["params"], key, *inputs)
    return {hf_key(path): leaf.shape for path, leaf in flax.traverse_util.flatten_dict(tree).items()}


def _checked(folder: Path, model: nn.Module) -> dict[str, StoredTensor]:
    """Every tensor of a checkpoint that is known to be this model's."""
    stored = _stored(folder)
    if read_config(folder).get("tie_word_embeddings") is not False:
        stored.pop("lm_head.weight", None)  # the embedding once more
    _check_fit(folder, stored, expected_shapes(model))
    return stored


def _load(
    stored: Mapping[str, StoredTensor],
    needed: Mapping[str, tuple[int, ...]],
    dtype: DTypeLike,
    placement: Placement | None = None,
    compact: bool = False,
    quantization: Quantization = "none",
) -> Params:
    def read(key: str) -> jax.Array | QuantizedWeight:
        sharding = None if placement is None else placement(tree_path(key), stored[key].shape)
        if quantization != "none" and len(stored[key].shape) == 2:
            whole = _read(stored[key], None, sharding)
            made: QuantizedWeight = jax.block_until_ready(quantize(whole, quantization))
            return made
        return _read(stored[key], _dtype_of(stored[key], dtype, compact), sharding)

    # The largest first: what is held besides the model itself is greatest while the model is smallest.
    order = sorted(needed, key=lambda key: -math.prod(needed[key]))
    with ThreadPoolExecutor(READERS) as pool:
        leaves = {tree_path(key): leaf for key, leaf in zip(order, pool.map(read, order), strict=True)}
    params: Params = flax.traverse_util.unflatten_dict(leaves)
    return params


def _dtype_of(stored: StoredTensor, dtype: DTypeLike, compact: bool) -> DTypeLike:
    return jnp.bfloat16 if compact and stored.dtype == "BF16" else dtype


def _stored(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of the checkpoint by key, from the headers of its files."""
    found: dict[str, StoredTensor] = {}
    for file in _files(folder):
        for key, entry in _entries(file).items():
            if key in found:
                raise UserError(f"{file}: {key} is also in {found[key].file.name}; the shards are of two checkpoints")
            found[key] = entry
    return found


def _files(folder: Path) -> list[Path]:
    if (folder / SINGLE).exists():
        if is_waited_for(folder / SINGLE):
            raise UserError(f"{folder / SINGLE}: {what_it_is(folder / SINGLE)}, expected safetensors")
        return [folder / SINGLE]
    if not (folder / INDEX).exists():
        others = sorted(p.name for p in folder.iterdir() if p.suffix in (".bin", ".gguf", ".pth", ".safetensors"))
        seen = f"; found {', '.join(others)}" if others else ""
        raise UserError(f"{folder}: no {SINGLE} and no {INDEX}{seen}. Weights are read from safetensors only")
    names = sorted(set(read_json(folder / INDEX, Index).weight_map.values()))
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise UserError(f"{folder}: {len(absent)} of {len(names)} shards are missing: {', '.join(absent[:SHOWN])}")
    return [folder / name for name in names]


def _entries(file: Path) -> dict[str, StoredTensor]:
    """Of a file that the library finds whole."""
    try:
        with safe_open(file, "np"):
            return tensors(file)
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{file}: {what_it_is(file)}, expected safetensors ({error}). Delete it and fetch it again "
            "(`neuroscope_jax models pull` replaces a damaged file in the cache)"
        ) from error


def _check_fit(folder: Path, stored: Mapping[str, StoredTensor], expected: Mapping[str, tuple[int, ...]]) -> None:
    both = [key for key in expected if key in stored]
    misfits = {
        "missing": [key for key in expected if key not in stored],
        "unmatched": [key for key in stored if key not in expected],
        "of a wrong shape": [
            f"{key} {stored[key].shape}, expected {expected[key]}" for key in both if stored[key].shape != expected[key]
        ],
        f"of a type other than {', '.join(KINDS)}": [
            f"{key} {stored[key].dtype}" for key in both if stored[key].dtype not in KINDS
        ],
    }
    told = [f"{len(keys)} {kind}: {_first(keys)}" for kind, keys in misfits.items() if keys]
    if not told:
        return
    bare = misfits["missing"] and all("model." + key in expected for key in misfits["unmatched"] or [""])
    hint = ". The keys lack the prefix 'model.': save the checkpoint from the causal-LM class" if bare else ""
    raise UserError(f"{folder}: the weights do not fit config.json: {'; '.join(told)}{hint}")


def _first(keys: list[str]) -> str:
    return ", ".join(sorted(keys)[:SHOWN]) + (", …" if len(keys) > SHOWN else "")


def _read(stored: StoredTensor, dtype: DTypeLike | None, sharding: jax.sharding.Sharding | None) -> jax.Array:
    """A tensor in `dtype`, or as it is stored."""
    # Cast on the device: less to transfer, and several times faster than NumPy's own bfloat16 cast.
    placed = jax.device_put(stored.read(), sharding)
    return jax.lax.convert_element_type(placed, placed.dtype if dtype is None else dtype).block_until_ready()
