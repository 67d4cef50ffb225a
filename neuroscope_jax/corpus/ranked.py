"""Sorted lists of examples, one a feature, of which the first K are kept.

Sorting networks do it, whose stages are compare-exchanges of whole arrays: on a CPU several times faster than XLA's own
sort of many short rows by three keys, and without any sort on accelerators.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from neuroscope_jax.pytree import PyTree, tree_map

LAST = np.uint32(0xFFFFFFFF)  # key of an empty place
NOWHERE = np.int32(2**31 - 1)


class Ranked(PyTree):
    """K entries of each feature, by rising (key, document, offset); an empty place has activation 0."""

    key: UInt32[Array, "E K"]
    document: Int[Array, "E K"]
    offset: Int[Array, "E K"]  # of the token in its document
    activation: Float[Array, "E K"]

    @classmethod
    def empty(cls, features: int, places: int) -> "Ranked":
        """No entries yet."""
        shape = (features, places)
        # Values of their own, because a donated buffer may stand in a pytree only once.
        return cls(
            key=jnp.full(shape, LAST),
            document=jnp.full(shape, NOWHERE),
            offset=jnp.full(shape, NOWHERE),
            activation=jnp.zeros(shape, jnp.float32),
        )

    @property
    def places(self) -> int:
        """K, a power of two."""
        return self.key.shape[1]

    def before(self, other: "Ranked") -> Bool[Array, "..."]:
        """Where an entry comes before that of `other`."""
        later = (self.document == other.document) & (self.offset < other.offset)
        same_key = (self.document < other.document) | later
        return (self.key < other.key) | ((self.key == other.key) & same_key)


def strongest_first(activation: Float[Array, "*n"]) -> UInt32[Array, "*n"]:
    """The key that puts greater activations first: the bits of a positive float rise with it."""
    bits = jax.lax.bitcast_convert_type(activation.astype(jnp.float32), jnp.uint32)
    return jnp.where(activation > 0, LAST - bits, LAST)


def first_of(a: Ranked, b: Ranked) -> Ranked:
    """The first K of two sorted lists of K.

    a  1 4 6 9      the smaller of a[i] and b[K-1-i] are the K first; they rise, then fall, and
    b  7 5 3 2      compare-exchanges of distance K/2 … 1 sort such a sequence
    """
    b = tree_map(lambda x: x[:, ::-1], b)
    return _network(_choose(b.before(a), b, a), _stages(a.places))


def ordered(entries: Ranked) -> Ranked:
    """Entries in any order, sorted: Batcher's bitonic network."""
    blocks = [1 << n for n in range(1, entries.places.bit_length())]
    return _network(entries, [stage for block in blocks for stage in _stages(block)])


def resized(entries: Ranked, places: int) -> Ranked:
    """Sorted entries cut to the first `places`, or with empty places behind."""
    if places <= entries.places:
        return tree_map(lambda x: x[:, :places], entries)
    more = Ranked.empty(entries.key.shape[0], places - entries.places)
    return tree_map(lambda x, y: jnp.concatenate([x, y], 1), entries, more)


def _stages(block: int) -> list[tuple[int, int]]:
    """(distance, block) of the exchanges that sort blocks which rise, then fall; every other one comes out falling."""
    return [(block >> n, block) for n in range(1, block.bit_length())]


def _network(entries: Ranked, stages: list[tuple[int, int]]) -> Ranked:
    """One stage after the other. A loop: written out, the stages take XLA four times as long to compile."""
    if not stages:
        return entries
    table = jnp.asarray(stages, jnp.int32)
    sorted_: Ranked = jax.lax.fori_loop(0, len(stages), lambda n, entries: _exchanged(entries, *table[n]), entries)
    return sorted_


def _exchanged(entries: Ranked, distance: Int[Array, ""], block: Int[Array, ""]) -> Ranked:
    """Each entry and its partner at `distance`: the smaller one goes first, in a falling block last."""
    place = jnp.arange(entries.places)
    later = (place & distance) != 0
    partner = tree_map(
        lambda x: jnp.where(later, jnp.roll(x, distance, axis=1), jnp.roll(x, -distance, axis=1)), entries
    )
    takes_first = later == ((place & block) != 0)
    return _choose(jnp.where(takes_first, partner.before(entries), entries.before(partner)), partner, entries)


def _choose(condition: Bool[Array, "..."], yes: Ranked, no: Ranked) -> Ranked:
    return tree_map(lambda x, y: jnp.where(condition, x, y), yes, no)
