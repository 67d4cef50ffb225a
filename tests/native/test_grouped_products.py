"""The native product with a 4-bit weight against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.quantized import GROUP
from neuroscope_jax.native import products

pytestmark = pytest.mark.usefixtures("native")

DTYPES = [jnp.float32, jnp.bfloat16]
Operands = tuple[jax.Array, jax.Array, jax.Array]


def operands(rows: int, width: int, out: int, dtype: jnp.dtype) -> tuple[Operands, np.ndarray]:
    """x, bytes and scales, and the weight that they stand for: every byte occurs, padding included."""
    rng = np.random.default_rng(rows * 10_007 + width)
    groups = -(-width // GROUP)
    packed = rng.integers(0, 256, (out, groups * GROUP // 2)).astype(np.uint8)
    scales = jnp.asarray(rng.uniform(1e-3, 2, (out, groups)), jnp.bfloat16)
    nibbles = (packed[..., None] >> np.array([0, 4]) & 15).astype(int).reshape(out, groups, GROUP)
    signed = np.where(nibbles > 7, nibbles - 16, nibbles)
    weight = (signed * np.asarray(scales, np.float64)[..., None]).reshape(out, -1)[:, :width]
    x = jnp.asarray(rng.standard_normal((rows, width)), dtype)
    return (x, jnp.asarray(packed.view(np.int8)), scales), weight


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "width", "out"),
    [(rows, 70, 33) for rows in range(1, 10)] + [(1, 1, 1), (3, 32, 3), (17, 97, 65), (1, 2304, 65), (8, 2304, 65)],
)
def test_equals_numpy(rows: int, width: int, out: int, dtype: jnp.dtype) -> None:
    given, weight = operands(rows, width, out, dtype)
    found = products.grouped_product(*given)
    assert found.dtype == jnp.float32
    exact_x = np.asarray(given[0], np.float64)
    summed = np.abs(exact_x) @ np.abs(weight).T  # what float32's rounding is in proportion to
    assert np.all(np.abs(found - exact_x @ weight.T) <= 2**-22 * summed)


@pytest.mark.parametrize("width", [15, 288, 300])
def test_a_row_does_not_depend_on_its_neighbours(width: int) -> None:
    (x, values, scales), _ = operands(23, width, 77, jnp.float32)
    together = products.grouped_product(x, values, scales)
    for rows in range(1, 9):
        np.testing.assert_array_equal(together[:rows], products.grouped_product(x[:rows], values, scales))


def test_scales_of_another_weight_are_refused() -> None:
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match=r"scales \[out, groups\]"):
        products.grouped_product(
            jnp.ones((1, 33)), jnp.ones((3, 16), jnp.int8), jnp.ones((3, 1), jnp.bfloat16)
        ).block_until_ready()
