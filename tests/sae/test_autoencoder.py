"""The encoder against NumPy in float64, and the unit tests of the specification's section 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from neuroscope_jax.sae.formats import load_sae


@pytest.fixture
def sae(arrays, write) -> SparseAutoencoder:
    return load_sae(write(**arrays), d_model=arrays["W_enc"].shape[0])


def oracle(x: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """JumpReLU in float64, written from the paper's formula."""
    W_enc, b_enc, threshold = (arrays[name].astype(np.float64) for name in ("W_enc", "b_enc", "threshold"))
    pre = x.astype(np.float64) @ W_enc + b_enc
    return np.where(pre > threshold, pre, 0.0)


def residuals(count: int, d_in: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, d_in)).astype(np.float32)


def test_sae_encode_known_input(sae, arrays):
    x = residuals(1, sae.d_in)
    encoded = np.asarray(sae.encode(jnp.asarray(x)))
    assert encoded.shape == (1, sae.d_sae)
    assert 0 < (encoded > 0).sum() < sae.d_sae / 2
    np.testing.assert_allclose(encoded, oracle(x, arrays), rtol=1e-5, atol=1e-4)


def test_same_active_set_and_order_as_float64(sae, arrays):
    x = residuals(200, sae.d_in)
    encoded, expected = np.asarray(sae.encode(jnp.asarray(x))), oracle(x, arrays)
    pre = x.astype(np.float64) @ arrays["W_enc"] + arrays["b_enc"]
    clear = np.abs(pre - arrays["threshold"]) > 1e-4  # away from ties
    assert clear.mean() > 0.99
    assert np.array_equal((encoded > 0)[clear], (expected > 0)[clear])
    for mine, theirs in zip(encoded, expected, strict=True):
        strongest = np.argsort(-theirs, kind="stable")[:10]
        assert np.all(np.diff(theirs[strongest]) < -1e-5), "the draw holds a tie; choose another seed"
        assert np.array_equal(np.asarray(jax.lax.top_k(mine, 10)[1]), strongest)


def test_sae_jumprelu_activation(sae, arrays):
    """A value at its threshold is zero; one above passes with its magnitude, not as 1."""
    j = 17
    direction = arrays["W_enc"][:, j] / np.sum(arrays["W_enc"][:, j] ** 2)
    for over in (-0.5, 0.5, 3.0):
        wanted = arrays["threshold"][j] + over
        x = (wanted - arrays["b_enc"][j]) * direction
        got = float(sae.encode(jnp.asarray(x))[j])
        assert got == pytest.approx(wanted if over > 0 else 0.0, rel=1e-5)


def test_threshold_is_strict():
    one = SparseAutoencoder(jnp.eye(2), jnp.zeros(2), jnp.array([1.0, 1.0]), jnp.float32(1))
    below, above = 1.0, float(np.nextafter(np.float32(1), np.float32(2)))
    assert one.encode(jnp.array([below, above])).tolist() == [0.0, above]


def test_sae_deterministic(sae):
    x = jnp.asarray(residuals(4, sae.d_in))
    encode = jax.jit(lambda x: sae.encode(x))
    assert np.array_equal(encode(x), encode(x))


def test_bfloat16_residual_is_read_in_float32(sae, arrays):
    x = jnp.asarray(residuals(8, sae.d_in)).astype(jnp.bfloat16)
    encoded = sae.encode(x)
    assert encoded.dtype == jnp.float32
    np.testing.assert_allclose(encoded, oracle(np.asarray(x, np.float32), arrays), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("factor", [0.01, 1.0, 300.0])
def test_rms_norm_is_the_specifications_step_2(arrays, write, factor):
    sae = load_sae(write(**arrays), d_model=arrays["W_enc"].shape[0], input_norm="rms")
    x = residuals(3, sae.d_in) * np.float32(factor)
    unit = x / np.sqrt(np.mean(x.astype(np.float64) ** 2, axis=-1, keepdims=True))
    np.testing.assert_allclose(sae.encode(jnp.asarray(x)), oracle(unit, arrays), rtol=1e-4, atol=1e-3)
