"""The small parts against NumPy in float64."""

import flax.errors
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.gemma2 import Embedding
from neuroscope_jax.models.layers import RMSNorm, Turns, matmul, rotary, soft_cap
from neuroscope_jax.native import kernels


@pytest.mark.parametrize("shape", [(1, 1, 24), (2, 1, 24), (1, 5, 24)])
@pytest.mark.parametrize(
    ("x_dtype", "weight_dtype"),
    [(jnp.float32, jnp.float32), (jnp.float32, jnp.bfloat16), (jnp.bfloat16, jnp.bfloat16)],
)
@pytest.mark.parametrize("native", [True, False])
def test_matmul_in_every_form(
    shape: tuple[int, ...], x_dtype: jnp.dtype, weight_dtype: jnp.dtype, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(kernels, "available", lambda *_: False)
    rng = np.random.default_rng(1)
    x, weight = jnp.array(rng.normal(size=shape), x_dtype), jnp.array(rng.normal(size=(40, 24)), weight_dtype)
    found = matmul(x, weight)
    assert found.dtype == jnp.float32
    # Products of the rounded inputs are exact in float32; only their sum is rounded.
    np.testing.assert_allclose(found, np.asarray(x, np.float64) @ np.asarray(weight, np.float64).T, atol=1e-5)


def test_rms_norm_scales_by_one_plus_weight() -> None:
    rng = np.random.default_rng(2)
    x, weight = rng.normal(0, 30, (2, 3, 16)), rng.normal(size=16)
    found = RMSNorm(1e-6, jnp.float32).apply({"params": {"weight": jnp.array(weight)}}, jnp.array(x))
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * (1 + weight)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_weight_of_another_shape_is_refused() -> None:
    with pytest.raises(flax.errors.ScopeParamShapeError, match="weight"):
        RMSNorm(1e-6, jnp.float32).apply({"params": {"weight": jnp.ones(5)}}, jnp.ones((1, 1, 4)))


def test_rotary_turns_each_pair_by_its_angle() -> None:
    rng = np.random.default_rng(3)
    x, positions = rng.normal(size=(1, 4, 2, 8)), np.array([[0, 1, 257, 8191]])
    angle = positions[0][:, None, None] * 10_000.0 ** (-np.arange(4) / 4)
    turned = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * angle)
    found = rotary(jnp.array(x, jnp.float32), Turns.of(jnp.array(positions), 8, 10_000.0))
    np.testing.assert_allclose(found, np.concatenate([turned.real, turned.imag], -1), atol=2e-3)


def test_turns_are_the_sines_to_the_bit() -> None:
    positions = jnp.arange(8192)[None]
    angle = positions[0, :, None].astype(jnp.float32) * 10_000.0 ** (-jnp.arange(128, dtype=jnp.float32) / 128)
    turns = Turns.of(positions, 256, 10_000.0)
    np.testing.assert_array_equal(turns.sin[0, :, 0], jnp.sin(angle))
    np.testing.assert_array_equal(turns.cos[0, :, 0], jnp.cos(angle))


def test_soft_cap() -> None:
    x = jnp.array([-1e4, -1.0, 0.0, 1.0, 1e4])
    np.testing.assert_allclose(soft_cap(x, 30.0), 30 * np.tanh(np.array(x) / 30), rtol=1e-6)
    assert soft_cap(x, None) is x


@pytest.mark.parametrize(("width", "scale"), [(2304, 48.0), (3584, 59.75), (4608, 68.0)])
def test_embedding_scale_is_rounded_to_bfloat16_first(width: int, scale: float) -> None:
    """The figures are those of the released 2B, 9B and 27B in bfloat16."""
    table = jnp.ones((2, width), jnp.bfloat16)
    found = Embedding(2, width, jnp.bfloat16).apply({"params": {"weight": table}}, jnp.array([[1]]))
    assert np.unique(np.asarray(found, np.float32)).tolist() == [scale]
