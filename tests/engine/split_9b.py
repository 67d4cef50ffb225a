"""Compiles the decode step of a Gemma 2 9B split over devices, from shapes alone, and tells as JSON what is in it.

`python -m tests.engine.split_9b COUNT LAYERS`, with as many CPU devices as XLA_FLAGS says. All 42 layers take a minute;
each is like the others.
"""

import dataclasses
import json
import sys
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from neuroscope_jax.engine import steps
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.models import sharding
from neuroscope_jax.models.cache import KVCache
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.weights import expected_shapes, tree_path
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from tests.engine.collect import GREEDY
from tests.engine.split_over_devices import exchanged
from tests.models.gemma_2_9b import GEMMA_2_9B

SLOTS, D_SAE = 4096, 16_384


def told(count: int, layers: int) -> dict[str, Any]:
    """Bytes a device is given for one step, and what devices exchange in it."""
    mesh = sharding.model_mesh(count)
    assert mesh is not None
    model = Gemma2(dataclasses.replace(GEMMA_2_9B, num_hidden_layers=layers), jnp.bfloat16)
    params, sae = weights(model, mesh), encoder(mesh)
    with sharding.in_use(mesh):
        tap = Tap(sae, FeatureFilter.of(None, D_SAE, "frequency", 0.5), layer=layers - 1, top_k=10)
        sampling = Sampling.of(GREEDY, [1])
        compiled = steps.decode_step.lower(model, params, (tap,), state(model, mesh), sampling).compile()
    return {
        "weight_parts": [leaf.size // count for leaf in jax.tree.leaves(params) if len(leaf.shape) == 2],
        "given": compiled.memory_analysis().argument_size_in_bytes,
        "whole": sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves((params, sae, state(model, mesh)))),
        "exchanged": list(exchanged(compiled.as_text())),
    }


def weights(model: Gemma2, mesh: Mesh) -> Any:
    place = sharding.parameters(mesh)
    leaves = {
        tree_path(key): jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=place(tree_path(key), shape))
        for key, shape in expected_shapes(model).items()
    }
    return flax.traverse_util.unflatten_dict(leaves)


def encoder(mesh: Mesh) -> SparseAutoencoder:
    shapes = {"encoder_rows": (D_SAE, GEMMA_2_9B.hidden_size), "b_enc": (D_SAE,), "threshold": (D_SAE,)}
    place = sharding.features(mesh)
    return SparseAutoencoder(
        **{
            name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=place((name,), shape))
            for name, shape in (shapes | {"input_scale": ()}).items()
        }
    )


def state(model: Gemma2, mesh: Mesh) -> steps.DecodeState:
    """As prefill_step leaves it."""
    everywhere, by_heads = (jax.NamedSharding(mesh, jax.P(*axes)) for axes in ((), (None, None, sharding.AXIS)))
    cache = jax.eval_shape(lambda: model.empty_cache(1, SLOTS))
    split: KVCache = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=by_heads), cache)
    scalar = jax.ShapeDtypeStruct((), jnp.int32, sharding=everywhere)
    counts = jax.ShapeDtypeStruct((model.config.vocab_size,), jnp.int32, sharding=everywhere)
    return steps.DecodeState(split, scalar, scalar, counts)


if __name__ == "__main__":
    print(json.dumps(told(*map(int, sys.argv[1:]))))
