"""A pool of windows of the corpus, each with one bit a feature: whether it fires anywhere in the window.

Whoever needs text on which a feature is silent draws from it: a 0 is verified over the whole window.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

BITS = 32
BEFORE = AFTER = 12  # tokens of context on each side of an example
WIDTH = BEFORE + 1 + AFTER  # tokens of a window, as many as an example shows
PLACES = 4096  # windows in the pool


def empty_pool(places: int, features: int) -> UInt32[Array, "W words"]:
    """All bits 0."""
    return jnp.zeros((places, -(-features // BITS)), jnp.uint32)


def with_fired(
    pool: UInt32[Array, "W words"], activations: Float[Array, "B T E"], slot: Int[Array, " B"], start: Int[Array, " B"]
) -> UInt32[Array, "W words"]:
    """The pool with the windows of a batch filled in; a row with slot -1 has none. `start` is a place in its row."""
    rows, places = jnp.arange(len(slot))[:, None], start[:, None] + jnp.arange(WIDTH)
    inside = activations.at[rows, places].get(mode="fill", fill_value=0)
    fired = jnp.any(inside > 0, axis=1)
    spread = jnp.pad(fired, ((0, 0), (0, pool.shape[1] * BITS - fired.shape[1]))).reshape(len(slot), -1, BITS)
    words = jnp.sum(spread.astype(jnp.uint32) << jnp.arange(BITS, dtype=jnp.uint32), axis=2, dtype=jnp.uint32)
    return pool.at[jnp.where(slot < 0, pool.shape[0], slot)].set(words, mode="drop")
