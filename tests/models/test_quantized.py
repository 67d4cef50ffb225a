"""Quantised weights against NumPy in float64: what is stored, and every form of the product."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.layers import BLOCK, Embedding, matmul
from neuroscope_jax.models.quantized import GROUP, Int4Weight, dequantize, quantize
from neuroscope_jax.native import kernels

KINDS = ["int8", "int4"]
STORED = [jnp.float32, jnp.bfloat16]


def weights(shape: tuple[int, int], dtype: jnp.dtype = jnp.float32) -> jax.Array:
    rng = np.random.default_rng(shape[1])
    return jnp.asarray(rng.standard_normal(shape) * rng.uniform(1e-3, 10, (shape[0], 1)), dtype)


def nibbles(weight: Int4Weight) -> np.ndarray:
    """[o, groups, GROUP] as the bytes say, taken apart by hand."""
    low_first = np.asarray(weight.values).view(np.uint8)[..., None] >> np.array([0, 4]) & 15
    signed = np.where(low_first > 7, low_first.astype(int) - 16, low_first)
    return signed.reshape(len(signed), -1, GROUP)


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("shape", [(7, 1), (5, 33), (12, 64), (3, 300)])
def test_int8_is_nearest_even_on_127_steps_a_row(shape: tuple[int, int], dtype: jnp.dtype) -> None:
    weight = weights(shape, dtype)
    found, exact = quantize(weight, "int8"), np.asarray(weight, np.float64)
    assert found.shape == shape
    scales = np.abs(exact).max(1) / 127
    np.testing.assert_allclose(found.scales, scales, rtol=1e-6)
    steps = exact / scales[:, None]
    clear = np.abs(steps % 1 - 0.5) > 1e-3  # elsewhere float32 may round to the other side
    np.testing.assert_array_equal(np.asarray(found.values)[clear], np.rint(steps)[clear])
    assert np.all(np.abs(dequantize(found) - exact) <= scales[:, None] * 0.5001)


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("shape", [(7, 1), (5, 33), (12, 64), (3, 300)])
def test_int4_has_a_scale_for_each_group(shape: tuple[int, int], dtype: jnp.dtype) -> None:
    weight = weights(shape, dtype)
    found = quantize(weight, "int4")
    assert isinstance(found, Int4Weight)
    assert found.shape == shape
    padded = np.pad(np.asarray(weight, np.float64), ((0, 0), (0, -shape[1] % GROUP)))
    groups = padded.reshape(shape[0], -1, GROUP)
    scales = np.asarray(found.scales, np.float64)[..., None]
    np.testing.assert_allclose(scales[..., 0], np.abs(groups).max(-1) / 7, rtol=2**-5)
    steps = nibbles(found) * scales
    assert np.all(np.abs(steps - groups) <= scales * 0.5001)
    np.testing.assert_array_equal(dequantize(found), steps.reshape(padded.shape)[:, : shape[1]])


def test_halves_are_rounded_to_even() -> None:
    weight = jnp.array([[127.0, 0.5, 1.5, -0.5, -1.5, 2.5]])
    np.testing.assert_array_equal(quantize(weight, "int8").values, [[127, 0, 2, 0, -2, 2]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_zeros_stays_zero(kind: str) -> None:
    np.testing.assert_array_equal(dequantize(quantize(jnp.zeros((2, 40)), kind)), np.zeros((2, 40)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_not_hidden(kind: str, bad: float) -> None:
    found = dequantize(quantize(jnp.ones((3, 40)).at[1, 7].set(bad), kind))
    assert np.isnan(found[1, 7])
    assert np.isfinite(found[::2]).all()


@pytest.mark.parametrize(("kind", "bits"), [("int8", 8 + 32 / 4096), ("int4", 4.5)])
def test_bits_of_a_weight(kind: str, bits: float) -> None:
    found = quantize(jnp.ones((8, 4096)), kind)
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(found)) == 8 * 4096 * bits / 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize(("shape", "out"), [((1, 1, 50), 40), ((2, 1, 64), BLOCK), ((1, 300, 50), 2 * BLOCK + 3)])
@pytest.mark.parametrize("native", [True, False])
def test_matmul_in_every_form(
    shape: tuple[int, ...], out: int, dtype: jnp.dtype, kind: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All forms multiply the very numbers that the weight stands for: only sums are rounded."""
    if not native:
        monkeypatch.setattr(kernels, "available", lambda *_: False)
    x = jnp.asarray(np.random.default_rng(1).normal(size=shape), dtype)
    weight = quantize(weights((out, shape[-1])), kind)
    found = matmul(x, weight)
    assert found.dtype == jnp.float32
    exact_x, exact = np.asarray(x, np.float64), np.asarray(dequantize(weight), np.float64)
    assert np.all(np.abs(found - exact_x @ exact.T) <= 2**-21 * (np.abs(exact_x) @ np.abs(exact).T))


@pytest.mark.parametrize("kind", KINDS)
def test_an_embedding_looks_up_its_rows(kind: str) -> None:
    table, ids = quantize(weights((30, 50)), kind), jnp.array([[3, 29, 3], [0, 1, 2]])
    found = Embedding(30, 50, jnp.float32).apply({"params": {"weight": table}}, ids)
    np.testing.assert_allclose(found, np.asarray(dequantize(table))[ids] * 50**0.5, rtol=1e-6)


def test_a_quantised_weight_of_another_shape_is_refused() -> None:
    table = quantize(weights((30, 50)), "int8")
    with pytest.raises(Exception, match="shape"):
        Embedding(31, 50, jnp.float32).apply({"params": {"weight": table}}, jnp.array([[0]]))


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_makes_no_float_copy_of_the_weight(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no kernel."""
    monkeypatch.setattr(kernels, "available", lambda *_: False)
    weight = quantize(weights((16 * BLOCK, 512)), kind)
    compiled = jax.jit(matmul).lower(jnp.ones((1, 512)), weight).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < weight.values.nbytes
