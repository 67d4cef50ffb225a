"""The compiled step of shading, its only jit but for blocks': rows ─▶ blocks 0..L ─▶ SAE ─▶ only what is asked for.

As in a pass, each device has its own rows; here also its own list of places in them.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.corpus.step import EVERYWHERE, SPLIT, residual_after
from neuroscope_jax.corpus.windows import WIDTH
from neuroscope_jax.models.weights import Params
from neuroscope_jax.pytree import PyTree
from neuroscope_jax.sae.autoencoder import SparseAutoencoder


class Stretches(PyTree):
    """WIDTH tokens of a row of the device, and the feature that is asked for there."""

    row: Int[Array, " C"]
    first: Int[Array, " C"]  # place in the row of the first token; what lies beyond the row is not to be read
    feature: Int[Array, " C"]


@functools.partial(jax.jit, static_argnames=("model", "mesh"))
def activations_of(
    model: nn.Module,
    params: Params,
    sae: SparseAutoencoder,
    ids: Int[Array, "B T"],
    stretches: Stretches,
    mesh: Mesh,
) -> tuple[Float[Array, "C 25"], Bool[Array, ""]]:
    """Activations at each token of the stretches, and whether all residuals were finite.

    `model` ends at the tapped block; leading axes are divided among the devices.
    """

    def on_one_device(
        params: Params, sae: SparseAutoencoder, ids: Int[Array, "B T"], stretches: Stretches
    ) -> tuple[Float[Array, "C 25"], Bool[Array, " 1"]]:
        residual = residual_after(model, params, ids)
        activations = sae.encode(residual)
        places = jnp.minimum(stretches.first[:, None] + jnp.arange(WIDTH), ids.shape[1] - 1)
        found = activations[stretches.row[:, None], places, stretches.feature[:, None]]
        return found, jnp.all(jnp.isfinite(residual))[None]

    found, finite = jax.shard_map(
        on_one_device,
        mesh=mesh,
        in_specs=(EVERYWHERE, EVERYWHERE, SPLIT, SPLIT),
        out_specs=SPLIT,
        check_vma=False,
    )(params, sae, ids, stretches)
    return found, jnp.all(finite)
