"""What a pass knows so far: one state a device, donated from batch to batch, joined with the others at the end."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from neuroscope_jax.corpus import reservoir, top, windows
from neuroscope_jax.corpus.firings import Firings, over_firings
from neuroscope_jax.corpus.moments import Moments, with_firings
from neuroscope_jax.corpus.ranked import Ranked
from neuroscope_jax.features.calibration import HISTOGRAM_EDGES
from neuroscope_jax.pytree import PyTree


class Batch(PyTree):
    """Rows of the corpus on the device; the columns are those of `samples.Rows`."""

    ids: Int[Array, "B T"]
    counted: Bool[Array, "B T"]
    document: Int[Array, " B"]
    offset: Int[Array, " B"]
    slot: Int[Array, " B"]
    start: Int[Array, " B"]


class CorpusState(PyTree):
    """Statistics and examples of every feature over the tokens counted so far."""

    tokens: Int[Array, ""]
    moments: Moments
    histogram: Int[Array, "E bins"]  # of the firings, between calibration.HISTOGRAM_EDGES
    top: Ranked  # [E, 64], strongest first, one a sample
    drawn: Ranked  # [E, 128], a random sample of the firings
    windows: UInt32[Array, "W words"]  # bit e % 32 of word e // 32: feature e fires in the window

    @classmethod
    def empty(cls, features: int) -> "CorpusState":
        """Before the first batch."""
        return cls(
            tokens=jnp.int32(0),
            moments=Moments.empty(features),
            histogram=jnp.zeros((features, len(HISTOGRAM_EDGES) + 1), jnp.int32),
            top=Ranked.empty(features, top.PLACES),
            drawn=Ranked.empty(features, reservoir.PLACES),
            windows=windows.empty_pool(windows.PLACES, features),
        )


def with_batch(state: CorpusState, activations: Float[Array, "B T E"], batch: Batch, seed: int) -> CorpusState:
    """Count a batch in. Activations of tokens that do not count are ignored."""
    activations = jnp.where(batch.counted[:, :, None], activations, 0.0)
    offset = batch.offset[:, None] + jnp.arange(batch.ids.shape[1], dtype=jnp.int32) - 1  # of every token

    def count(state: CorpusState, firings: Firings) -> CorpusState:
        return state.replace(
            moments=with_firings(state.moments, firings),
            histogram=_with_binned(state.histogram, firings),
            drawn=reservoir.with_drawn(state.drawn, seed, firings),
        )

    state = state.replace(
        tokens=state.tokens + jnp.sum(batch.counted, dtype=jnp.int32),
        top=top.with_strongest(state.top, activations, batch.document, batch.offset),
        windows=windows.with_fired(state.windows, activations, batch.slot, batch.start),
    )
    document = jnp.broadcast_to(batch.document[:, None], offset.shape)
    return over_firings(
        count, state, activations.reshape(-1, activations.shape[-1]), document.reshape(-1), offset.reshape(-1)
    )


def _with_binned(histogram: Int[Array, "E bins"], firings: Firings) -> Int[Array, "E bins"]:
    bins = jnp.searchsorted(jnp.asarray(HISTOGRAM_EDGES), firings.activation, side="right")
    return histogram.at[firings.feature, bins].add(firings.active)
