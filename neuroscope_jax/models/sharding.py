"""Where a model lies when it is split over several devices of one process (tensor parallelism), the same axis for all:

                        device 0             device 1
    q, k, v  [heads*H, D]  the first heads      the others       ┐ each attends with heads and cache of its own;
    KV cache [B, S, K, H]  the first heads      the others       │ what comes out is a part of the sum,
    o_proj   [D, heads*H]  their columns        the others       ┘ all-reduce [B, T, D]
    gate, up [F, D]        the first F/2 rows   the others       ┐
    down     [D, F]        their columns        the others       ┘ all-reduce [B, T, D]
    embed    [V, D]        the first V/2 ids    the others         all-reduce [B, T, D]; of the logits, all-gather [V]
    SAE      [E, D], [E]   the first E/2        the others         all-gather [E]
    norms, token, position, counts: on both

What does not divide evenly is on every device whole. No device ever holds more of a weight than its part.

XLA moves the numbers; it is told where parameters lie, and of a few values in between where to have them, while the
mesh is in use (`in_use`). Without a mesh all of this does nothing.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding
from jaxtyping import Array, Float, Shaped

from neuroscope_jax import platforms
from neuroscope_jax.errors import UserError

AXIS = "model"
# By the module a weight [out, in] belongs to, in Hugging Face's names, which the families share; others are not split.
SPLIT_AXIS = {
    **dict.fromkeys(("embed_tokens", "q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"), 0),
    **dict.fromkeys(("o_proj", "down_proj"), 1),
}

AnyMesh = Mesh | AbstractMesh
Placement = Callable[[tuple[str, ...], tuple[int, ...]], Sharding]  # of a parameter by its path and shape


def model_mesh(count: int) -> Mesh | None:
    """The first `count` devices of the platform in use, None for one. Raises UserError where there are fewer."""
    devices = platforms.local_devices()
    if count > len(devices):
        raise UserError(
            f"--model-parallel {count}: devices found here: {len(devices)} of platform {devices[0].platform}; "
            f"expected at most {len(devices)}"
        )
    return Mesh(np.array(devices[:count]), (AXIS,)) if count > 1 else None


def check_heads(name: str, kv_heads: int, count: int) -> None:
    """Raise UserError where key/value heads cannot be dealt out evenly: attention would be repeated everywhere."""
    if kv_heads % count:
        fitting = ", ".join(str(n) for n in range(1, kv_heads + 1) if kv_heads % n == 0)
        raise UserError(
            f"--model-parallel {count}: {name} has {kv_heads} key/value heads, which are dealt out whole and evenly; "
            f"expected one of {fitting}"
        )


def parameters(mesh: AnyMesh) -> Placement:
    """Each weight of a model split as above."""

    def place(path: tuple[str, ...], shape: tuple[int, ...]) -> Sharding:
        return _split(mesh, shape, SPLIT_AXIS.get(path[-2]) if len(path) > 1 else None)

    return place


def features(mesh: AnyMesh) -> Placement:
    """Each array of an SAE split by features, its first axis."""
    return lambda _, shape: _split(mesh, shape, 0 if shape else None)


def everything_at(sharding: Sharding) -> Placement:
    """Every parameter placed alike."""
    return lambda _path, _shape: sharding


def mesh_of(params: Any) -> Mesh | None:
    """The mesh that a tree of arrays is split over, None where it is not."""
    found = (getattr(leaf.sharding, "mesh", None) for leaf in jax.tree.leaves(params))
    return next((mesh for mesh in found if isinstance(mesh, Mesh) and _splits(mesh)), None)


def in_use(mesh: Mesh | None) -> contextlib.AbstractContextManager[object]:
    """While it is entered, in this thread, new arrays are on every device of `mesh` and the marks below count."""
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


def whole(x: Shaped[Array, "*any"]) -> Shaped[Array, "*any"]:
    """Mark, inside a jit: every device needs all of `x`."""
    return _marked(x, None)


def by_heads(slots: Float[Array, "B S K H"]) -> Float[Array, "B S K H"]:
    """Mark: keys or values lie where their heads are."""
    return _marked(slots, 2)


def _marked(x: Array, axis: int | None) -> Array:
    mesh = jax.sharding.get_abstract_mesh()
    if not _splits(mesh):
        return x
    marked: Array = jax.lax.with_sharding_constraint(x, _spec(mesh, x.shape, axis))
    return marked


def _split(mesh: AnyMesh, shape: tuple[int, ...], axis: int | None) -> NamedSharding:
    return NamedSharding(mesh, _spec(mesh, shape, axis))


def _spec(mesh: AnyMesh, shape: tuple[int, ...], axis: int | None) -> PartitionSpec:
    """`axis` dealt out where that goes evenly."""
    if axis is None or shape[axis] % mesh.size:
        return PartitionSpec()
    return PartitionSpec(*[None] * axis, AXIS)


def _splits(mesh: AnyMesh) -> bool:
    return AXIS in mesh.axis_names
