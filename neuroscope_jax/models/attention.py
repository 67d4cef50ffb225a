"""Grouped-query attention with soft-capped scores and an optional sliding window."""

import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.models.cache import held
from neuroscope_jax.models.layers import precision_of, soft_cap
from neuroscope_jax.native import attention as native
from neuroscope_jax.native import kernels, products
from neuroscope_jax.pytree import PyTree

MASKED = -2.3819763e38  # lowest bfloat16-safe score; a row is never masked whole, since a token always sees itself

FEWEST = 64  # queries that are worth a product for each head


def causal_mask(queries: Int[Array, "B T"], keys: Int[Array, "B S"], window: int | None) -> Bool[Array, "B T S"]:
    """Which key positions a query position may look at: 0 <= j <= i, and j > i - window in a local layer.

        window None          window 2
        j: 0 1 2 3           j: 0 1 2 3
    i=0    x . . .       i=0    x . . .
    i=1    x x . .       i=1    x x . .
    i=2    x x x .       i=2    . x x .
    i=3    x x x x       i=3    . . x x

    Right padding lies at j > i and slots not yet written at j < 0, so the same rule hides them.
    """
    i, j = queries[:, :, None], keys[:, None, :]
    allowed = (j >= 0) & (j <= i)
    return allowed if window is None else allowed & (j > i - window)


class View(PyTree):
    """What each query may look at, in one kind of layer."""

    mask: Bool[Array, "B T S"]
    window: int | None = struct.field(pytree_node=False)
    start: Int[Array, ""] | None  # where the keys are a cache: the position of the first query, the others follow it

    @classmethod
    def of_cache(cls, positions: Int[Array, "B T"], size: int, window: int | None) -> "View":
        """Queries at consecutive positions, the same in every row, which are the last written to a layer's slots."""
        keys = jnp.broadcast_to(held(positions[0, -1], size), (positions.shape[0], size))
        return cls(causal_mask(positions, keys, window), window, positions[0, 0])

    @classmethod
    def of_each_other(cls, positions: Int[Array, "B T"], window: int | None) -> "View":
        """Tokens that see those before them and no cache."""
        return cls(causal_mask(positions, positions, window), window, None)


def attend(
    query: Float[Array, "B T N H"],
    key: Float[Array, "B S K H"],
    value: Float[Array, "B S K H"],
    view: View,
    scale: float,
    cap: float | None,
) -> Float[Array, "B T N H"]:
    """Weighted mean of values; scores and softmax in float32. On CPUs few queries of a cache go through the kernel."""
    if view.start is not None and native.takes(query.shape[0], query.shape[1], key.dtype):
        mixed = native.attend_cached(query, key, value, view.start, scale, cap, view.window)
    else:
        mixed = _attend(query, key, value, view.mask, scale, cap)
    return mixed.astype(query.dtype)


def _attend(
    query: Float[Array, "B T N H"],
    key: Float[Array, "B S K H"],
    value: Float[Array, "B S K H"],
    mask: Bool[Array, "B T S"],
    scale: float,
    cap: float | None,
) -> Float[Array, "B T N H"]:
    batch, length, heads, head_dim = query.shape
    grouped = query.reshape(batch, length, key.shape[2], heads // key.shape[2], head_dim)
    scores = jnp.where(mask[:, None, None], soft_cap(_scores(grouped, key) * scale, cap), MASKED)
    return _mix(jax.nn.softmax(scores, axis=-1), value).reshape(query.shape)


# One query (T = 1) multiplies and sums where several go through einsum, which copies the whole cache on CPU: 17 times
# slower at S = 4096. Many of one sequence go head by head through the kernel for many rows, where there is one.


def _scores(query: Float[Array, "B T K G H"], key: Float[Array, "B S K H"]) -> Float[Array, "B K G T S"]:
    batch, queries, _, grouped, _ = query.shape
    if _in_tiles(batch, queries, grouped, key.dtype):
        rows = query[0].transpose(1, 2, 0, 3)  # K G T H
        return _head_by_head(rows, key[0].transpose(1, 0, 2))[None]
    if queries > 1:
        return _einsum("BTKGH,BSKH->BKGTS", query, key)
    by_slot = query.astype(jnp.float32) * key[:, :, :, None].astype(jnp.float32)  # B S K G H
    return jnp.sum(by_slot, axis=-1).transpose(0, 2, 3, 1)[:, :, :, None]


def _mix(weights: Float[Array, "B K G T S"], value: Float[Array, "B S K H"]) -> Float[Array, "B T K G H"]:
    batch, _, grouped, queries, _ = weights.shape
    if _in_tiles(batch, queries, grouped, value.dtype):
        rows = weights[0].astype(value.dtype)
        return _head_by_head(rows, value[0].transpose(1, 2, 0)).transpose(2, 0, 1, 3)[None]
    if queries > 1:
        return _einsum("BKGTS,BSKH->BTKGH", weights.astype(value.dtype), value)
    by_slot = weights[:, :, :, 0].transpose(0, 3, 1, 2)[..., None]  # B S K G 1
    return jnp.sum(by_slot * value[:, :, :, None].astype(jnp.float32), axis=1, keepdims=True)


def _in_tiles(batch: int, queries: int, grouped: int, dtype: DTypeLike) -> bool:
    """Whether the rows of each head of keys, some for each query, are enough to be worth a call of their own."""
    rows, kind = queries * grouped, jnp.dtype(dtype).name
    return batch == 1 and queries >= FEWEST and products.takes(rows, kind, kind) and kernels.in_tiles(rows, kind, kind)


def _head_by_head(rows: Float[Array, "K G T i"], weights: Float[Array, "K o i"]) -> Float[Array, "K G T o"]:
    heads, grouped, length, width = rows.shape
    together = rows.reshape(heads, grouped * length, width)
    found = jnp.stack([products.product(x, weight) for x, weight in zip(together, weights, strict=True)])
    return found.reshape(heads, grouped, length, -1)


def _einsum(dims: str, a: Array, b: Array) -> Array:
    return jnp.einsum(dims, a, b, precision=precision_of(b.dtype), preferred_element_type=jnp.float32)
