"""The key/value cache: an explicit pytree that the steps donate, never hidden module state.

Slot s of a layer holds position s. A local layer of a long cache has fewer slots, and they are used over and over: slot
s holds the last position p that was written with p % slots == s.

    6 slots, positions 0 … 8 written      slot      0 1 2 3 4 5
                                          position  6 7 8 3 4 5
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from neuroscope_jax.models.sharding import by_heads
from neuroscope_jax.pytree import PyTree

# Slots of a local layer beyond its window. They take what is written ahead of the text: the padding of a chunk, ids
# that were proposed in vain. What that leaves is how far before its end a text may be taken up again.
MARGIN = 512
MULTIPLE = 64  # of local slots, as the native kernel takes that many together


class KVCache(PyTree):
    """Keys and values of every layer, for texts of up to `length` positions."""

    keys: tuple[Float[Array, "B _ K H"], ...]
    values: tuple[Float[Array, "B _ K H"], ...]
    windows: tuple[int | None, ...] = struct.field(pytree_node=False)  # of each layer; None sees everything
    length: int = struct.field(pytree_node=False)

    @classmethod
    def empty(
        cls, windows: Sequence[int | None], batch: int, length: int, kv_heads: int, head_dim: int, dtype: DTypeLike
    ) -> "KVCache":
        """A zeroed cache for `length` positions."""

        def zeros(window: int | None) -> Float[Array, "B S K H"]:
            return by_heads(jnp.zeros((batch, slots_of(window, length), kv_heads, head_dim), dtype))

        # One buffer a leaf: a donated buffer may stand in the pytree only once.
        return cls(tuple(map(zeros, windows)), tuple(map(zeros, windows)), tuple(windows), length)

    @property
    def nbytes(self) -> int:
        """Of all layers; also where the leaves are shapes only."""
        return self.nbytes_of(self.length)

    def nbytes_of(self, length: int) -> int:
        """Of the same layers for `length` positions."""

        def of_layers(layers: tuple[Any, ...]) -> int:
            pairs = zip(layers, self.windows, strict=True)
            return sum(x.size // x.shape[1] * slots_of(window, length) * x.dtype.itemsize for x, window in pairs)

        return of_layers(self.keys) + of_layers(self.values)

    def grown(self, length: int) -> "KVCache":
        """The same entries in a cache for `length` positions."""
        return self._of(length, lambda x, size: jnp.pad(x, ((0, 0), (0, size - x.shape[1]), (0, 0), (0, 0))))

    def beginning(self, length: int) -> "KVCache":
        """A copy of the entries of the first `length` positions, as far as they are still there."""
        return self._of(length, lambda x, size: jnp.copy(x[:, :size]))

    def forgotten(self, written: int) -> int:
        """Once so many positions are written, those below this one have lost a slot to a later one."""
        return max(0, *(written - layer.shape[1] for layer in self.keys))

    def remembers(self, count: int, forgotten: int) -> bool:
        """Whether a text can go on at position `count`: whether all that is seen from there is still in its slot."""
        return all(window is None or forgotten <= max(0, count - window + 1) for window in self.windows)

    def _of(self, length: int, change: Callable[[Array, int], Array]) -> "KVCache":
        """The same layers for `length` positions; `change` makes an array have so many slots."""

        def changed(layers: tuple[Array, ...]) -> tuple[Array, ...]:
            pairs = zip(layers, self.windows, strict=True)
            return tuple(by_heads(change(x, slots_of(window, length))) for x, window in pairs)

        return KVCache(changed(self.keys), changed(self.values), self.windows, length)


def slots_of(window: int | None, length: int) -> int:
    """Of a layer with such a window, in a cache for `length` positions."""
    return length if window is None else min(length, -(-(window + MARGIN) // MULTIPLE) * MULTIPLE)


def held(last: Int[Array, ""], size: int) -> Int[Array, " S"]:
    """The position that each of `size` slots holds once `last` is written; below 0 where there is none yet."""
    return last - (last - jnp.arange(size)) % size


def write(
    old: Float[Array, "B S K H"], new: Float[Array, "B T K H"], start: Int[Array, ""], window: int | None
) -> Float[Array, "B S K H"]:
    """Put T new entries of a layer into the slots of positions start … start+T-1, all below the cache's length.

    Past the last slot XLA would shift them back; only where slots are used over and over can they reach beyond it.
    """
    size, dtype, bits = old.shape[1], old.dtype, _written_as(old.dtype)
    old, new = jax.lax.bitcast_convert_type(old, bits), jax.lax.bitcast_convert_type(new.astype(dtype), bits)
    if new.shape[1] > 1 and window is not None and size == slots_of(window, sys.maxsize):
        at = (start + jnp.arange(new.shape[1])) % size
        written = old.at[:, at].set(new, unique_indices=True, mode="promise_in_bounds")
    else:
        written = jax.lax.dynamic_update_slice(old, new, (0, start % size, 0, 0))
    return by_heads(jax.lax.bitcast_convert_type(written, dtype))


def _written_as(dtype: DTypeLike) -> DTypeLike:
    """Bits for bfloat16 on CPUs: to write one slot, XLA would turn all of the cache into float32 and back."""
    return jnp.uint16 if dtype == jnp.bfloat16 and jax.default_backend() == "cpu" else dtype
