"""The key/value cache: an explicit pytree that the steps donate, never hidden module state."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from neuroscope_jax.models.sharding import by_heads
from neuroscope_jax.pytree import PyTree


class KVCache(PyTree):
    """Keys and values of every layer; slot s holds position s."""

    keys: tuple[Float[Array, "B S K H"], ...]
    values: tuple[Float[Array, "B S K H"], ...]

    @property
    def length(self) -> int:
        """S, the number of slots."""
        return self.keys[0].shape[1]

    @property
    def nbytes(self) -> int:
        """Of all layers; also where the leaves are shapes only."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self))

    def nbytes_of(self, length: int) -> int:
        """Of the same layers with `length` slots."""
        return self.nbytes // self.length * length

    @classmethod
    def empty(cls, layers: int, batch: int, length: int, kv_heads: int, head_dim: int, dtype: DTypeLike) -> "KVCache":
        """A zeroed cache of `length` slots."""
        shape = (batch, length, kv_heads, head_dim)
        # One buffer a leaf: a donated buffer may stand in the pytree only once.
        return cls(
            keys=tuple(by_heads(jnp.zeros(shape, dtype)) for _ in range(layers)),
            values=tuple(by_heads(jnp.zeros(shape, dtype)) for _ in range(layers)),
        )

    def grown(self, length: int) -> "KVCache":
        """The same entries in a cache of `length` slots."""
        pad = ((0, 0), (0, length - self.length), (0, 0), (0, 0))
        grown: KVCache = jax.tree.map(lambda x: by_heads(jnp.pad(x, pad)), self)
        return grown


def write(
    slots: Float[Array, "B S K H"], new: Float[Array, "B T K H"], start: Int[Array, ""]
) -> Float[Array, "B S K H"]:
    """Put T new entries at slots start … start+T-1, all of which must exist: past the end XLA would shift them back."""
    return by_heads(jax.lax.dynamic_update_slice(slots, new.astype(slots.dtype), (0, start, 0, 0)))
