"""From a residual vector to the few features worth showing; runs inside the step's jit."""

import functools

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Float, Int

from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.models.sharding import whole
from neuroscope_jax.pytree import PyTree
from neuroscope_jax.sae.autoencoder import SparseAutoencoder


class Tap(PyTree):
    """One place to read the residual stream: after block `layer`, through `sae`, filtered, K strongest kept."""

    sae: SparseAutoencoder
    filter: FeatureFilter
    layer: int = struct.field(pytree_node=False)
    top_k: int = struct.field(pytree_node=False)


class Readout(PyTree):
    """The features of a token at one tap. Places beyond the number of active features have activation 0."""

    indices: Int[Array, "*tokens K"]
    activations: Float[Array, "*tokens K"]
    surprise: Float[Array, "*tokens K"]
    firings: Int[Array, "*tokens K"]  # of each feature in the calibration
    filtered_count: Int[Array, "*tokens"]


def read_out(tap: Tap, residual: Float[Array, "*tokens D"]) -> Readout:
    """Encode, suppress, rank, keep the top K; what the filter hides makes room for the next in line."""
    activations = whole(tap.sae.encode(residual))
    if activations.ndim == 1:
        return _strongest(tap, activations)
    readout: Readout = jax.vmap(functools.partial(_strongest, tap))(activations)
    return readout


def _strongest(tap: Tap, activations: Float[Array, " E"]) -> Readout:
    active, suppressed = activations > 0, tap.filter.suppressed
    surprise = tap.filter.surprise(activations)
    rank = jnp.where(tap.filter.by_surprise, surprise, activations)
    with jax.named_scope("top_features"):
        _, indices = jax.lax.top_k(jnp.where(active & ~suppressed, rank, -jnp.inf), tap.top_k)
    return Readout(
        indices=indices,
        activations=jnp.where(suppressed[indices], 0.0, activations[indices]),
        surprise=surprise[indices],
        firings=tap.filter.firings[indices],
        filtered_count=jnp.sum(active & suppressed),
    )
