"""The native product against NumPy in float64, and what does its work where it cannot be compiled."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.layers import matmul
from neuroscope_jax.native import kernels, products

KINDS = [
    tuple(map(jnp.dtype, kinds)) for kinds in products.MOST_ROWS if kinds[1] not in ("int8", "int4")
]  # of x and weight


def rounded(rng: np.random.Generator, shape: tuple[int, int], dtype: jnp.dtype) -> jax.Array:
    return jnp.asarray(rng.standard_normal(shape), dtype)


@pytest.mark.parametrize(("x_dtype", "weight_dtype"), KINDS)
@pytest.mark.parametrize(
    ("rows", "width", "out"),
    [(rows, 70, 33) for rows in range(1, 10)]  # every number of rows at once, and one more
    + [(1, 1, 1), (3, 5, 3), (17, 16, 8), (33, 127, 31), (64, 256, 129), (1, 2304, 65), (8, 2304, 65)]
    + [
        (49, 70, 33),
        (53, 383, 17),
        (60, 384, 128),
        (61, 385, 129),
        (130, 33, 300),
        (200, 1000, 260),
        (70, 2400, 50),
        (64, 7, 1),
    ],
)
@pytest.mark.usefixtures("native")
def test_equals_numpy(rows: int, width: int, out: int, x_dtype: jnp.dtype, weight_dtype: jnp.dtype) -> None:
    rng = np.random.default_rng(rows * 10_007 + width)
    x, weight = rounded(rng, (rows, width), x_dtype), rounded(rng, (out, width), weight_dtype)
    found = jax.jit(products.product)(x, weight)
    assert found.dtype == jnp.float32
    exact_x, exact_weight = np.asarray(x, np.float64), np.asarray(weight, np.float64)
    summed = np.abs(exact_x) @ np.abs(exact_weight).T  # what float32's rounding is in proportion to
    in_tiles = kernels.in_tiles(rows, x_dtype, weight_dtype)
    allowed = 2**-21 if in_tiles else 2**-22  # hundreds of products one after the other, or in the lanes of a vector
    assert np.all(np.abs(found - exact_x @ exact_weight.T) <= allowed * summed)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(("x_dtype", "weight_dtype"), KINDS)
@pytest.mark.parametrize("width", [15, 288, 300])
def test_a_row_does_not_depend_on_its_neighbours(width: int, x_dtype: jnp.dtype, weight_dtype: jnp.dtype) -> None:
    """So that a few tokens read together or one by one give the same numbers."""
    rng = np.random.default_rng(5)
    x, weight = rounded(rng, (23, width), x_dtype), rounded(rng, (77, width), weight_dtype)
    together = products.product(x, weight)
    for rows in range(1, 9):
        np.testing.assert_array_equal(together[:rows], products.product(x[:rows], weight), f"{rows} rows")


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(("x_dtype", "weight_dtype"), KINDS)
def test_nor_where_they_are_many(x_dtype: jnp.dtype, weight_dtype: jnp.dtype) -> None:
    """So that a corpus pass gives the same numbers whatever shares a batch."""
    rng = np.random.default_rng(6)
    x, weight = rounded(rng, (101, 2400), x_dtype), rounded(rng, (150, 2400), weight_dtype)
    together = products.product(x, weight)
    for rows in (rows for rows in range(25, 101, 7) if kernels.in_tiles(rows, x_dtype, weight_dtype)):
        np.testing.assert_array_equal(together[:rows], products.product(x[:rows], weight), f"{rows} rows")
        np.testing.assert_array_equal(together[101 - rows :], products.product(x[101 - rows :], weight))


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(("x_dtype", "weight_dtype"), KINDS)
@pytest.mark.parametrize("rows", [3, 60])
def test_what_is_not_finite_stays_where_it_is(rows: int, x_dtype: jnp.dtype, weight_dtype: jnp.dtype) -> None:
    x = jnp.ones((rows, 40), x_dtype).at[1, 7].set(jnp.inf)
    found = products.product(x, jnp.ones((9, 40), weight_dtype))
    np.testing.assert_array_equal(jnp.isfinite(found).all(axis=1), np.arange(rows) != 1)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("rows", [3, 60])
@pytest.mark.parametrize("narrow", ["x", "weight"])
def test_every_bit_of_a_float32_counts_beside_a_bfloat16(rows: int, narrow: str) -> None:
    rng = np.random.default_rng(8)
    exponents = rng.integers(127 - 100, 255, (rows, 70), dtype=np.uint32)  # from 2^-100 up
    floats = jnp.asarray(
        (exponents << 23 | rng.integers(0, 1 << 23, exponents.shape, dtype=np.uint32)).view(np.float32)
    )
    one = jnp.eye(70, dtype=jnp.bfloat16)
    found = products.product(floats, one) if narrow == "weight" else products.product(one, floats).T
    np.testing.assert_array_equal(found, floats)


@pytest.mark.usefixtures("native")
def test_a_product_can_be_learnt_through() -> None:
    rng = np.random.default_rng(7)
    x, weight = rounded(rng, (60, 40), jnp.float32), rounded(rng, (9, 40), jnp.float32)
    found, expected = (
        jax.grad(lambda x, weight, form=form: jnp.sum(jnp.sin(form(x, weight))), argnums=(0, 1))(x, weight)
        for form in (products.product, lambda x, weight: x @ weight.T)
    )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(("rows", "width", "out"), [(0, 4, 3), (2, 0, 3), (2, 4, 0), (60, 0, 3), (60, 4, 0)])
def test_nothing_to_multiply(rows: int, width: int, out: int) -> None:
    found = products.product(jnp.ones((rows, width)), jnp.ones((out, width)))
    np.testing.assert_array_equal(found, np.zeros((rows, out)))


@pytest.mark.usefixtures("native")
def test_room_for_tiles_is_as_much_as_they_take_or_none() -> None:
    x, weight = jnp.ones((60, 40)), jnp.ones((9, 40))
    result = jax.ShapeDtypeStruct((60, 9), jnp.float32)
    for room, fits in (
        (kernels.room_for_tiles(60, 40, jnp.float32, jnp.float32), True),
        (0, True),
        (60 * 40 + 1, False),
    ):
        call = jax.ffi.ffi_call(kernels.PRODUCT, (result, jax.ShapeDtypeStruct((room,), jnp.float32)))
        if fits:
            np.testing.assert_array_equal(call(x, weight)[0], np.full((60, 9), 40.0))
        else:
            with pytest.raises(jax.errors.JaxRuntimeError, match="room for tiles"):
                call(x, weight)


@pytest.mark.usefixtures("native")
def test_on_several_devices_at_once() -> None:
    """shard_map gives each device its own call."""
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()), ("data",))
    rows, everywhere = jax.sharding.PartitionSpec("data"), jax.sharding.PartitionSpec()
    x, weight = jnp.arange(mesh.size * 12.0).reshape(-1, 4), jnp.eye(4) * 2
    split = jax.shard_map(products.product, mesh=mesh, in_specs=(rows, everywhere), out_specs=rows)
    np.testing.assert_array_equal(jax.jit(split)(x, weight), x * 2)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("kind", [kind for kind in products.MOST_ROWS if kind[1] != "int8"], ids="-".join)
@pytest.mark.parametrize("tiles", [True, False])
def test_matmul_uses_it_for_few_rows_and_for_many_in_tiles(
    kind: tuple[str, str], tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "room_for_tiles", lambda rows, width, *dtypes: int(tiles) * rows * width)
    x_dtype, weight = kind[0], jnp.ones((8, 16), kind[1])
    for rows, taken in ((1, True), (2048, tiles)):
        lowered = jax.jit(lambda x: matmul(x, weight)).lower(jnp.ones((rows, 16), x_dtype))
        assert (kernels.PRODUCT in lowered.as_text()) is taken


def test_no_compiler_is_waited_for_where_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(kernels, "available", lambda *sources: asked.append(sources) or False)
    assert not products.takes(1, "float32", "int4")
    assert asked == []
    assert not products.takes(1, "float32", "float32")
    assert len(asked) == 1


def test_without_a_compiler_xla_does_it_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(kernels, "begin", kernels.begin.__wrapped__)
    monkeypatch.setattr(kernels, "_registered", kernels._registered.__wrapped__)
    with caplog.at_level(logging.INFO):
        found = matmul(jnp.ones((1, 16)), jnp.ones((8, 16)))
    np.testing.assert_array_equal(found, np.full((1, 8), 16.0))
    assert "CXX=no-such-compiler is not there" in caplog.text


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(("width", "out"), [(1, 1), (40, 600), (33, 257), (2304, 70)])
def test_only_the_rows_that_are_wanted(width: int, out: int) -> None:
    rng = np.random.default_rng(width)
    x, weight = rounded(rng, (1, width), jnp.float32), rounded(rng, (out, width), jnp.float32)
    wanted = rng.random(out) < 0.3
    found = products.product_where(x, jnp.where(wanted[:, None], weight, jnp.nan), jnp.asarray(wanted))
    np.testing.assert_array_equal(found, jnp.where(wanted, products.product(x, weight), 0.0))
