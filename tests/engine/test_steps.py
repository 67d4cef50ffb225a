"""The compiled programs themselves: what they hold, what they donate, and the hook tests of the specification."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.engine import steps
from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.models.gemma2 import Gemma2
from tests.engine.conftest import CONFIG, D_SAE

SAMPLING = Sampling.of(SamplingOptions(temperature=0), [1])


@pytest.fixture
def state(model, params):
    ids = jnp.array([[3, 4, 5, 0]])
    return steps.prefill_step(model, params, (), ids, jnp.int32(3), SAMPLING, 16)[0]


def test_noop_hook_is_zero_cost(model, params, taps, state):
    """Without taps the step holds no trace of an SAE; with taps it does, so the marks looked for are the right ones."""
    bare, tapped = (
        steps.decode_step.lower(model, params, used, state, SAMPLING).as_text(debug_info=True) for used in ((), taps)
    )
    for mark in ("sae_encode", "top_features", f"{D_SAE}x{CONFIG.hidden_size}"):
        assert mark in tapped
        assert mark not in bare


def test_the_cache_is_updated_in_place(model, params, taps, state):
    compiled = steps.decode_step.lower(model, params, taps, state, SAMPLING).compile()
    cache_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(state.cache))
    assert compiled.memory_analysis().alias_size_in_bytes >= cache_bytes
    steps.decode_step(model, params, taps, state, SAMPLING)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.cache))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_no_weight_is_copied(dtype):
    """Temporaries stay below the smallest projection: nothing is transposed or converted whole."""
    config = dataclasses.replace(CONFIG, hidden_size=512, intermediate_size=1024, head_dim=64, vocab_size=2000)
    model = Gemma2(config, dtype)
    ids = jnp.zeros((1, 4), jnp.int32)
    params = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        jax.eval_shape(lambda: model.init(jax.random.key(0), ids, ids, method="scores")["params"]),
    )
    state, _ = steps.prefill_step(model, params, (), ids, jnp.int32(3), SAMPLING, 16)
    compiled = steps.decode_step.lower(model, params, (), state, SAMPLING).compile()
    smallest = min(leaf.nbytes for leaf in jax.tree.leaves(params) if leaf.ndim == 2)
    assert compiled.memory_analysis().temp_size_in_bytes < smallest


def test_hook_receives_correct_layer(model, params, taps):
    """The tap on layer 1 reads block 1's output and no other, within a whole step."""
    ids = jnp.array([[3, 4, 5]])
    _, output = steps.prefill_step(model, params, taps[:1], ids, jnp.int32(3), SAMPLING, 16)
    positions = jnp.arange(3)[None]
    _, sown = model.apply({"params": params}, ids, positions, mutable=["intermediates"])
    strongest = [
        jax.lax.top_k(taps[0].sae.encode(sown["intermediates"][f"layers_{i}"]["resid_post"][0][0, -1]), 5)[0]
        for i in range(CONFIG.num_hidden_layers)
    ]
    matches = [np.allclose(found, output.features[0].activations, rtol=1e-4) for found in strongest]
    assert matches == [False, True, False]


def test_hook_tensor_shape(model, params):
    ids = jnp.zeros((1, 7), jnp.int32)
    _, sown = model.apply({"params": params}, ids, jnp.arange(7)[None], mutable=["intermediates"])
    shapes = [sown["intermediates"][f"layers_{i}"]["resid_post"][0].shape for i in range(CONFIG.num_hidden_layers)]
    assert shapes == [(1, 7, CONFIG.hidden_size)] * CONFIG.num_hidden_layers


def test_a_grown_cache_changes_nothing(model, params, taps, state):
    grown = steps.grow_cache(state, 32)
    assert grown.cache.length == 32
    _, expected = steps.decode_step(model, params, taps, state, SAMPLING)
    _, found = steps.decode_step(model, params, taps, grown, SAMPLING)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), expected, found)
