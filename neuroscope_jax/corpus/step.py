"""The compiled step of a pass, its only jit but for each block's: rows ─▶ blocks 0..L ─▶ SAE ─▶ counted in.

device 0   rows 0 … B-1     ─▶ state 0        each device has its own rows and its own state;
device 1   rows B … 2B-1    ─▶ state 1        nothing is exchanged until the pass is over
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.corpus.state import Batch, CorpusState, with_batch
from neuroscope_jax.models.weights import Params
from neuroscope_jax.pytree import PyTree, tree_map
from neuroscope_jax.sae.autoencoder import SparseAutoencoder

AXIS = "data"
EVERYWHERE, SPLIT = PartitionSpec(), PartitionSpec(AXIS)


class Outcome(PyTree):
    """What the host reads of a step."""

    features_seen: Int[Array, ""]  # that have fired so far
    finite: Bool[Array, ""]  # whether all residuals of the batch were


def local_mesh() -> Mesh:
    """All devices of this process in a row."""
    return Mesh(np.array(jax.local_devices()), (AXIS,))


def replicated(mesh: Mesh) -> NamedSharding:
    """A copy on each device."""
    return NamedSharding(mesh, EVERYWHERE)


def split(mesh: Mesh) -> NamedSharding:
    """The leading axis divided among the devices."""
    return NamedSharding(mesh, SPLIT)


def empty_states(mesh: Mesh, features: int) -> CorpusState:
    """One state a device, before the first batch; every leaf has the devices as its leading axis."""

    def states() -> CorpusState:
        return tree_map(lambda x: jnp.broadcast_to(x, (mesh.size, *x.shape)), CorpusState.empty(features))

    empty: CorpusState = jax.jit(states, out_shardings=split(mesh))()
    return empty


def residual_after(model: nn.Module, params: Params, ids: Int[Array, "B T"]) -> Float[Array, "B T D"]:
    """The residual stream behind the last block of `model`, without cache or logits."""
    positions = jnp.broadcast_to(jnp.arange(ids.shape[1]), ids.shape)
    residual: Array = model.apply({"params": params}, ids, positions)[0]
    return residual


@functools.partial(jax.jit, static_argnames=("model", "seed", "mesh"), donate_argnames=("states",))
def corpus_step(
    model: nn.Module,
    params: Params,
    sae: SparseAutoencoder,
    states: CorpusState,
    batch: Batch,
    seed: int,
    mesh: Mesh,
) -> tuple[CorpusState, Outcome]:
    """Count a batch in. `model` ends at the tapped block."""

    def on_one_device(
        params: Params, sae: SparseAutoencoder, states: CorpusState, batch: Batch
    ) -> tuple[CorpusState, Bool[Array, " 1"]]:
        residual = residual_after(model, params, batch.ids)
        state = with_batch(tree_map(lambda x: x[0], states), sae.encode(residual), batch, seed)
        return tree_map(lambda x: x[None], state), jnp.all(jnp.isfinite(residual))[None]

    states, finite = jax.shard_map(
        on_one_device,
        mesh=mesh,
        in_specs=(EVERYWHERE, EVERYWHERE, SPLIT, SPLIT),
        out_specs=SPLIT,
        check_vma=False,  # constants start the loops over firings; they are the same on every device
    )(params, sae, states, batch)
    return states, Outcome(jnp.sum(jnp.any(states.moments.count > 0, axis=0)), jnp.all(finite))
