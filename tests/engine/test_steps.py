"""The compiled programs themselves: what they hold, what they donate, and the hook tests of the specification."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.engine import steps
from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.features.calibration import BINS, FeatureStats
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.native import kernels
from tests.engine.conftest import CONFIG, D_SAE
from tests.random_params import random_params

SAMPLING = Sampling.of(SamplingOptions(temperature=0), [1])


def prefilled(model, params, taps, ids):
    """State and output behind the first three of `ids`."""
    cache = model.empty_cache(1, 16)
    return steps.prefill_step(model, params, taps, cache, ids, jnp.int32(0), jnp.int32(3), SAMPLING)


@pytest.fixture
def state(model, params):
    ids = jnp.array([[3, 4, 5, 0]])
    return prefilled(model, params, (), ids)[0]


def test_noop_hook_is_zero_cost(model, params, taps, state):
    """Without taps the step holds no trace of an SAE; with taps it does, so the marks looked for are the right ones."""
    bare, tapped = (
        steps.decode_step.lower(model, params, used, state, SAMPLING).as_text(debug_info=True) for used in ((), taps)
    )
    for mark in ("sae_encode", "top_features", f"{D_SAE}x{CONFIG.hidden_size}"):
        assert mark in tapped
        assert mark not in bare


def test_filters_are_arguments_of_the_step(model, params, taps, state):
    """One program for every mode, threshold and calibration, which holds none of them, and no branch for each."""

    def lowered(seed, mode):
        count = np.random.default_rng(seed).integers(1, 100, D_SAE)
        figures = count / 7
        stats = FeatureStats(100, count, figures, figures, figures, np.zeros((D_SAE, BINS), np.int64))
        calibrated = tuple(t.replace(filter=FeatureFilter.of(stats, D_SAE, mode, 0.1 * seed)) for t in taps)
        return steps.decode_step.lower(model, params, calibrated, state, SAMPLING)

    programs = [lowered(seed, mode) for seed, mode in enumerate(("none", "frequency", "surprise", "combined"))]
    assert len({program.as_text() for program in programs}) == 1
    program = steps.decode_step.lower(model, params, taps, state, SAMPLING).as_text()
    assert program == programs[0].as_text()
    lines = program.splitlines()
    multiplied = [line for line in lines if "dot_general" in line or kernels.PRODUCT in line]
    assert sum(f"{D_SAE}x{CONFIG.hidden_size}x" in line for line in multiplied) == len(taps)
    assert sum("top_k(" in line and f"tensor<{D_SAE}x" in line for line in lines) == len(taps)
    assert not [line for line in lines if "constant" in line and f"tensor<{D_SAE}x" in line]


def test_the_cache_is_updated_in_place(model, params, taps, state):
    compiled = steps.decode_step.lower(model, params, taps, state, SAMPLING).compile()
    cache_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(state.cache))
    assert compiled.memory_analysis().alias_size_in_bytes >= cache_bytes
    steps.decode_step(model, params, taps, state, SAMPLING)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.cache))


@pytest.fixture(scope="module", params=["float32", "bfloat16", "compact"])
def wide_step(request):
    """Parameters and the compiled step of a model whose matrices dwarf its activations."""
    config = dataclasses.replace(CONFIG, hidden_size=1024, intermediate_size=2048, head_dim=128, vocab_size=5000)
    if request.param == "compact" and not kernels.available():
        pytest.skip("NO NATIVE KERNELS on this machine: weights are never compact")
    model = Gemma2(config, jnp.bfloat16 if request.param == "bfloat16" else jnp.float32)
    ids = jnp.zeros((1, 4), jnp.int32)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), ids, ids, method="scores")["params"])
    dtype = jnp.float32 if request.param == "float32" else jnp.bfloat16
    params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, dtype), shapes)
    state, _ = prefilled(model, params, (), ids)
    return params, steps.decode_step.lower(model, params, (), state, SAMPLING).compile()


def test_no_weight_is_copied(wide_step):
    """Temporaries stay below the smallest projection: nothing is transposed or converted whole."""
    params, compiled = wide_step
    smallest = min(leaf.nbytes for leaf in jax.tree.leaves(params) if leaf.ndim == 2)
    assert compiled.memory_analysis().temp_size_in_bytes < smallest


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_cache_is_not_copied(dtype):
    """Its entries are written where it lies; all temporaries together are smaller than one layer's keys."""
    model = Gemma2(CONFIG, dtype)
    ids = jnp.zeros((1, 2), jnp.int32)
    params = random_params(model)
    empty = steps.empty_cache(model, 4096)
    arguments = (model, params, (), empty, ids, jnp.int32(0), jnp.int32(2), SAMPLING)
    state, _ = steps.prefill_step(*arguments)
    compiled = steps.decode_step.lower(model, params, (), state, SAMPLING).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < state.cache.keys[0].nbytes


def test_the_vocabulary_is_not_sorted(wide_step):
    """It would take 28 ms of every step with 256,000 tokens; XLA does it where it fails to see a top_k."""
    program = wide_step[1].as_text()
    assert "TopK" in program
    assert " sort(" not in program


def test_hook_receives_correct_layer(model, params, taps):
    """The tap on layer 1 reads block 1's output and no other, within a whole step."""
    ids = jnp.array([[3, 4, 5]])
    _, output = prefilled(model, params, taps[:1], ids)
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
    grown = jax.tree.map(jnp.copy, state).replace(cache=steps.grow_cache(state.cache, 32))
    assert grown.cache.length == 32
    _, expected = steps.decode_step(model, params, taps, state, SAMPLING)
    _, found = steps.decode_step(model, params, taps, grown, SAMPLING)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), expected, found)
