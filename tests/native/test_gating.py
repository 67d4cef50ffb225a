"""GELU times up in the kernel, against NumPy in float64 and against XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.layers import gelu_times
from neuroscope_jax.native import gating, kernels

pytestmark = pytest.mark.usefixtures("native")

DTYPES = [jnp.float32, jnp.bfloat16]


def exact(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    gate = gate.astype(np.float64)
    found: np.ndarray = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) * up
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (3, 5), (1, 1, 31), (2, 7, 33), (5, 16_384), (3, 20_001)])
def test_equals_numpy(shape: tuple[int, ...], dtype: jnp.dtype) -> None:
    rng = np.random.default_rng(len(shape))
    gate, up = (4 * rng.standard_normal((2, *shape))).astype(np.float32)
    found = jax.jit(gating.gated, static_argnums=2)(gate, up, dtype)
    assert (found.shape, found.dtype) == (shape, dtype)
    rounding = 2**-8 if dtype == jnp.bfloat16 else 3e-6
    np.testing.assert_allclose(np.asarray(found, np.float64), exact(gate, up), rtol=rounding, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ends_of_the_numbers(dtype: jnp.dtype) -> None:
    gate = jnp.array([0, 1e-30, 60, 3e38, jnp.inf, -14, -15, -60, -3e38, -jnp.inf, jnp.nan, 1], jnp.float32)
    up = jnp.ones_like(gate).at[-1].set(jnp.nan)
    found = np.asarray(gating.gated(gate, up, dtype), np.float32)
    np.testing.assert_allclose(found[:4], [0, 5e-31, 60, 3e38], rtol=2**-8)
    assert found[4] == np.inf
    np.testing.assert_allclose(found[5:10], 0, atol=1e-36)
    assert np.isnan(found[10:]).all()


def test_ties_go_to_even() -> None:
    up = jnp.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 1 + 2**-8 + 2**-20], jnp.float32)
    gate = jnp.full(4, 64.0)  # whose GELU it is itself
    np.testing.assert_array_equal(gating.gated(gate, up, jnp.bfloat16), (64 * up).astype(jnp.bfloat16))


def test_the_slope_is_that_of_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, up = jnp.array(np.random.default_rng(3).standard_normal((2, 4, 9)), jnp.float32)
    slopes = jax.grad(lambda gate, up: jnp.sum(gelu_times(gate, up, jnp.float32) ** 2), (0, 1))
    found = slopes(gate, up)
    monkeypatch.setattr(kernels, "available", lambda *_: False)
    for ours, its in zip(found, slopes(gate, up), strict=True):
        np.testing.assert_allclose(ours, its, rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    call = jax.ffi.ffi_call(kernels.GATED, jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="as large as the result"):
        jax.block_until_ready(call(jnp.ones(3), jnp.ones(4)))
