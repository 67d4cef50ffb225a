"""The native product with an int8 weight against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.native import kernels, products

pytestmark = pytest.mark.usefixtures("native")

DTYPES = [jnp.float32, jnp.bfloat16]


def operands(rows: int, width: int, out: int, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array, jax.Array]:
    rng = np.random.default_rng(rows * 10_007 + width)
    values = rng.integers(-127, 128, (out, width))
    values.flat[:2] = -128, 127  # the ends of the type
    x = jnp.asarray(rng.standard_normal((rows, width)), dtype)
    return x, jnp.asarray(values, jnp.int8), jnp.asarray(rng.uniform(1e-4, 2, out), jnp.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "width", "out"),
    [(rows, 70, 33) for rows in range(1, 10)]  # every number of rows at once, and one more
    + [(1, 2, 1), (3, 5, 3), (17, 16, 8), (33, 127, 31), (64, 256, 129), (1, 2304, 65), (8, 2304, 65)]
    + [(53, 383, 17), (61, 385, 129), (130, 33, 300), (200, 1000, 260), (70, 2400, 50)],
)
def test_equals_numpy(rows: int, width: int, out: int, dtype: jnp.dtype) -> None:
    x, values, scales = operands(rows, width, out, dtype)
    found = jax.jit(products.scaled_product)(x, values, scales)
    assert found.dtype == jnp.float32
    exact_x = np.asarray(x, np.float64)
    weight = np.asarray(values, np.float64) * np.asarray(scales, np.float64)[:, None]
    allowed = 2**-21 if kernels.in_tiles(rows, dtype, "int8") else 2**-22
    summed = np.abs(exact_x) @ np.abs(weight).T  # what float32's rounding is in proportion to
    assert np.all(np.abs(found - exact_x @ weight.T) <= allowed * summed)


@pytest.mark.parametrize("width", [2304, 70_001])
@pytest.mark.parametrize("rows", [1, 3])
def test_numbers_far_apart(rows: int, width: int) -> None:
    """Beside a large number small ones are rounded as floats would be in a sum with it, in a wide row more often."""
    x, values, scales = operands(rows, width, 5, jnp.float32)
    x, values = x.at[:, 7].set(3e4).at[:, 9].set(-1e-3), values.at[:, 7].set(100)
    found = products.scaled_product(x, values, scales)
    exact_x = np.asarray(x, np.float64)
    weight = np.asarray(values, np.float64) * np.asarray(scales, np.float64)[:, None]
    allowed = 2**-23 * (width / 4) ** 0.5  # floats, two roundings a step, in vectors of four; integers stay far below
    assert np.all(np.abs(found - exact_x @ weight.T) <= allowed * (np.abs(exact_x) @ np.abs(weight).T))


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-12, 1e12, 1e30])
def test_any_size(size: float) -> None:
    x, values, _ = operands(2, 300, 9, jnp.float32)
    found = products.scaled_product(size * x, values, jnp.ones(9))
    expected = np.asarray(size * x, np.float64) @ np.asarray(values, np.float64).T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [15, 288, 300])
def test_a_row_does_not_depend_on_its_neighbours(width: int, dtype: jnp.dtype) -> None:
    x, values, scales = operands(23, width, 77, dtype)
    together = products.scaled_product(x, values, scales)
    for rows in range(1, 9):
        np.testing.assert_array_equal(together[:rows], products.scaled_product(x[:rows], values, scales))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nor_where_they_are_many(dtype: jnp.dtype) -> None:
    x, values, scales = operands(101, 2400, 150, dtype)
    together = products.scaled_product(x, values, scales)
    for rows in (rows for rows in range(25, 101, 7) if kernels.in_tiles(rows, dtype, "int8")):
        np.testing.assert_array_equal(together[101 - rows :], products.scaled_product(x[101 - rows :], values, scales))


@pytest.mark.parametrize(("rows", "width", "out"), [(0, 4, 3), (60, 0, 3), (60, 4, 0)])
def test_nothing_to_multiply(rows: int, width: int, out: int) -> None:
    found = products.scaled_product(jnp.ones((rows, width)), jnp.ones((out, width), jnp.int8), jnp.ones(out))
    np.testing.assert_array_equal(found, np.zeros((rows, out)))


@pytest.mark.parametrize("rows", [3, 60])
def test_what_is_not_finite_stays_where_it_is(rows: int) -> None:
    x = jnp.ones((rows, 40)).at[1, 7].set(jnp.inf)
    values, scales = jnp.ones((9, 40), jnp.int8), jnp.ones(9).at[4].set(jnp.nan)
    found = jnp.isfinite(products.scaled_product(x, values, scales))
    np.testing.assert_array_equal(found, np.outer(np.arange(rows) != 1, np.arange(9) != 4))
