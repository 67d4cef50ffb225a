"""The strongest examples of each feature, one a sample: exact, ties to the earlier token of the corpus."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from neuroscope_jax.corpus.ranked import NOWHERE, Ranked, first_of, ordered, resized, strongest_first

PLACES = 64  # of which 20 must be left when near duplicates are dropped


def with_strongest(
    top: Ranked, activations: Float[Array, "B T E"], document: Int[Array, " B"], offset: Int[Array, " B"]
) -> Ranked:
    """The same with the samples of a batch; `offset` is that of each row's first token after BOS."""
    strongest = jnp.max(activations, axis=1)
    places = jnp.arange(activations.shape[1], dtype=jnp.int32)[:, None]
    # Two plain reductions: XLA:CPU's argmax takes four times as long.
    place = jnp.min(jnp.where(activations == strongest[:, None], places, activations.shape[1]), axis=1)
    fires = strongest > 0
    candidates = Ranked(
        key=strongest_first(strongest).T,
        document=jnp.where(fires, document[:, None], NOWHERE).T,
        offset=jnp.where(fires, offset[:, None] + place - 1, NOWHERE).T,
        activation=strongest.T,
    )
    power = 1 << (len(document) - 1).bit_length()
    return first_of(top, resized(ordered(resized(candidates, power)), top.places))
