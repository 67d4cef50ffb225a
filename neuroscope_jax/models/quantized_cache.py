"""The weights to serve. Quantised ones are made once and kept in the cache folder, from where later starts take them:

quantized/<model_sha256>-int8/
    source.json    the checkpoint they are of
    weights/       every parameter by its place in the tree, as Orbax writes it; norms in float32
"""

import functools
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flax.linen as nn
import flax.traverse_util
import jax
import jax.numpy as jnp
import msgspec
from jax.sharding import Sharding, SingleDeviceSharding

from neuroscope_jax.config import Quantization, cache_folder
from neuroscope_jax.files import folder_set_aside
from neuroscope_jax.identity import model_hash
from neuroscope_jax.models.hub_cache import weight_files
from neuroscope_jax.models.quantized import Kind, QuantizedWeight, quantize
from neuroscope_jax.models.sharding import Placement
from neuroscope_jax.models.weights import Params, expected_shapes, load_weights, loaded_shapes, tree_path
from neuroscope_jax.saving import alone, by_name, reason, told_once

logger = logging.getLogger(__name__)

LAYOUT = 1  # counts up when what is stored, or how it is rounded, changes
DIGITS = 16  # of the hash in a folder's name
SOURCE_FILE, WEIGHTS_FOLDER = "source.json", "weights"


class Source(msgspec.Struct, frozen=True):
    """The checkpoint that weights were quantised from, down to the files: a tensor changed in the middle counts."""

    layout: int
    model_sha256: str
    files: dict[str, tuple[int, int]]  # name: bytes, time of the last change in ns

    @classmethod
    def of(cls, folder: Path) -> "Source":
        """The checkpoint in a folder as it is now."""
        stats = {name: (folder / name).stat() for name in weight_files(folder)}
        return cls(LAYOUT, model_hash(folder), {name: (s.st_size, s.st_mtime_ns) for name, s in stats.items()})


def served_weights(
    folder: Path,
    model: nn.Module,
    quantization: Quantization = "none",
    placement: Placement | None = None,
    compact: bool = False,
) -> Params:
    """A checkpoint's weights as they are served, in the model's dtype or quantised; `compact` as in `load_weights`.

    Raises UserError as that does. A cache that cannot be read or written is told about and done without.
    """
    if quantization == "none":
        return load_weights(folder, model, model.dtype, placement=placement, compact=compact)
    began = time.perf_counter()
    source = Source.of(folder)
    place = cache_folder() / "quantized" / f"{source.model_sha256[:DIGITS]}-{quantization}"
    params, how = _restored(place, source, model, quantization, placement), "restored from"
    if params is None:
        params = load_weights(folder, model, jnp.float32, placement=placement, quantization=quantization)
        how = "made, kept in" if _kept(place, source, params) else "made, not kept in"
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(params)) / 1e6
    logger.info("quantization %s: %.1f MB %s %s in %.1f s", quantization, size, how, place, time.perf_counter() - began)
    # What was restored is tied to its device, what was just made is not, and programs are compiled for one of these.
    tied: Params = jax.tree.map(lambda leaf: jax.device_put(leaf, leaf.sharding), _norms_in(params, model.dtype))
    return tied


def served_shapes(
    folder: Path,
    model: nn.Module,
    quantization: Quantization = "none",
    placement: Placement | None = None,
    compact: bool = False,
) -> Params:
    """What `served_weights` will give, its leaves shapes with dtype and place.

    Refuses a checkpoint as `load_weights` does, also where its quantised weights are kept.
    """
    if quantization == "none":
        return loaded_shapes(folder, model, model.dtype, placement, compact)
    loaded_shapes(folder, model, model.dtype)
    like = _norms_in(_shapes(model, quantization), model.dtype)
    shapes: Params = jax.tree.unflatten(jax.tree.structure(like), list(_placed(like, placement)))
    return shapes


def _norms_in(params: Params, dtype: Any) -> Params:
    """Arrays or shapes."""

    def cast(leaf: Any) -> Any:
        if isinstance(leaf, QuantizedWeight):
            return leaf
        return leaf.update(dtype=dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf.astype(dtype)

    cast_all: Params = jax.tree.map(cast, params, is_leaf=lambda leaf: isinstance(leaf, QuantizedWeight))
    return cast_all


def _kept(place: Path, source: Source, params: Params) -> bool:
    """Whether the weights could be written; a process that ends meanwhile leaves nothing that would be read."""
    try:
        with folder_set_aside(place) as aside, told_once():
            _checkpointer().save((aside / WEIGHTS_FOLDER).resolve(), by_name(params))
            (aside / SOURCE_FILE).write_bytes(msgspec.json.encode(source))
    except Exception as error:  # Orbax and TensorStore raise several kinds
        logger.warning("%s cannot be written (%s): the next start will quantise anew", place, reason(error))
        return False
    return True


def _restored(place: Path, source: Source, model: nn.Module, kind: Kind, placement: Placement | None) -> Params | None:
    """The cached weights, each array straight to where it belongs; None where there are none of this checkpoint."""
    if not (place / SOURCE_FILE).is_file():
        return None
    import orbax.checkpoint as ocp

    like = _shapes(model, kind)
    try:
        if msgspec.json.decode((place / SOURCE_FILE).read_bytes(), type=Source) != source:
            logger.info("%s is of other files than the checkpoint's now: made anew", place)
            return None
        placed = dict(zip(by_name(like), _placed(like, placement), strict=True))
        wanted = ocp.checkpoint_utils.construct_restore_args(placed)
        with told_once():
            found = _checkpointer().restore((place / WEIGHTS_FOLDER).resolve(), item=placed, restore_args=wanted)
    except Exception as error:
        logger.warning("%s cannot be read (%s): made anew", place, reason(error))
        return None
    restored: Params = jax.tree.unflatten(jax.tree.structure(like), [found[name] for name in placed])
    return restored


def _shapes(model: nn.Module, kind: Kind) -> Params:
    """The quantised tree, its leaves shapes only."""
    wide = {key: jax.ShapeDtypeStruct(shape, jnp.float32) for key, shape in expected_shapes(model).items()}
    made = functools.partial(quantize, kind=kind)
    tree = {tree_path(k): jax.eval_shape(made, leaf) if len(leaf.shape) == 2 else leaf for k, leaf in wide.items()}
    shapes: Params = flax.traverse_util.unflatten_dict(tree)
    return shapes


def _placed(like: Params, placement: Placement | None) -> Iterator[jax.ShapeDtypeStruct]:
    """Shapes with the place of each: scales of rows lie where the rows do."""
    here = SingleDeviceSharding(next(iter(jnp.zeros(()).devices())))
    for path, leaf in jax.tree.leaves_with_path(like):
        names = tuple(entry.key for entry in path if isinstance(entry, jax.tree_util.DictKey))
        as_matrix = leaf.shape if len(names) == len(path) else (*leaf.shape, 1)[:2]
        where: Sharding = here if placement is None else placement(names, as_matrix)
        yield jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where)


def _checkpointer() -> Any:
    """Uncompressed: rounded weights shrink little, and decompression would cost more than reading."""
    import orbax.checkpoint as ocp

    options = alone()
    handler = ocp.PyTreeCheckpointHandler(use_compression=False, multiprocessing_options=options)
    return ocp.Checkpointer(handler, multiprocessing_options=options)
