"""A random sample of each feature's firings: those with the smallest hash of (feature, token), a bottom-k sketch.

Every firing is equally likely to be among them, and which ones are depends on nothing but the seed: not on the order of
the batches, the number of devices or a restart.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from neuroscope_jax.corpus.firings import Firings
from neuroscope_jax.corpus.hashing import hashed
from neuroscope_jax.corpus.ranked import LAST, Ranked, first_of
from neuroscope_jax.pytree import PyTree, tree_map

PLACES = 128  # firings kept a feature: 5 for a label, 50 of other samples for its score, and to spare
FEW = 8  # where at most one firing in so many can get in, which is soon the case, only those are sorted


def draw(seed: int, firings: Firings) -> UInt32[Array, " n"]:
    """The key of each firing; LAST, which no firing has, where there is none."""
    words = (x.astype(jnp.uint32) for x in (firings.feature, firings.document, firings.offset))
    return jnp.where(firings.active, jnp.minimum(hashed(seed, *words), LAST - 1), LAST)


def with_drawn(reservoir: Ranked, seed: int, firings: Firings) -> Ranked:
    """The same with a batch of firings offered to it."""
    key = draw(seed, firings)
    hopeful = firings.active & (key <= reservoir.key[:, -1][firings.feature])
    offered = Offered(jnp.where(hopeful, firings.feature, reservoir.key.shape[0]), key, firings)
    few = len(key) // FEW
    lists = jax.lax.cond(
        jnp.sum(hopeful) <= few,
        lambda: _by_feature(reservoir, _only(offered, jnp.nonzero(hopeful, size=few, fill_value=len(key))[0])),
        lambda: _by_feature(reservoir, offered),
    )
    return first_of(reservoir, lists)


class Offered(PyTree):
    """Firings with their keys; `feature` is E for those that cannot get in."""

    feature: Int[Array, " n"]
    key: UInt32[Array, " n"]
    firings: Firings


def _only(offered: Offered, places: Int[Array, " m"]) -> Offered:
    """Those at `places`; a place beyond the end gives one that cannot get in."""
    return tree_map(lambda x: x.at[places].get(mode="fill", fill_value=np.iinfo(np.int32).max), offered)


def _by_feature(reservoir: Ranked, offered: Offered) -> Ranked:
    """The offered firings as sorted lists, one a feature."""
    features, places = reservoir.key.shape
    columns = offered.feature, offered.key, offered.firings.document, offered.firings.offset, offered.firings.activation
    feature, key, document, offset, activation = jax.lax.sort(columns, num_keys=4)
    first = jnp.searchsorted(feature, jnp.arange(features + 1))
    at = feature, jnp.arange(len(feature)) - first[jnp.minimum(feature, features)]
    entries = Ranked(key, document, offset, activation)
    return tree_map(lambda x, y: x.at[at].set(y, mode="drop"), Ranked.empty(features, places), entries)
