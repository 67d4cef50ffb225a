"""`product(x, weight)`: products.h as a JAX function, on CPUs where it could be compiled."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int8, Shaped

from neuroscope_jax.native import kernels

# By the dtypes of x and weight, the rows up to which the kernel is faster than XLA:CPU's own product without tiles,
# measured on [9216, 2304] and [2304, 9216] with AVX-512: from here on XLA multiplies at nearly the processor's peak. Of
# unlike dtypes it first writes one out in float32. In tiles the kernel takes any number of rows: of float32 XLA makes
# 0.9 as much there, of bfloat16 two thirds with AVX2 and with AMX. Of int4 it makes as much as a kernel that was tried.
MOST_ROWS = {
    ("float32", "float32"): 64,
    ("float32", "bfloat16"): 512,
    ("bfloat16", "float32"): 64,
    ("bfloat16", "bfloat16"): 128,
    ("float32", "int8"): 32,
    ("bfloat16", "int8"): 32,
}


def takes(rows: int, x_dtype: DTypeLike, weight: str) -> bool:
    """Whether a product here should be used for so many rows of x and weights of a kind."""
    kind = jnp.dtype(x_dtype).name, weight
    # The compiler is waited for only where there is a kernel.
    if kind not in MOST_ROWS or not kernels.available(kernels.sources_for(weight)):
        return False
    return rows <= MOST_ROWS[kind] or kernels.in_tiles(rows, *kind)


@jax.custom_vjp
def product(x: Float[Array, "m i"], weight: Float[Array, "o i"]) -> Float[Array, "m o"]:
    """`x @ weight.T`, summed and returned in float32; of dtypes that are a key of MOST_ROWS."""
    y: Array = jax.ffi.ffi_call(kernels.PRODUCT, _results(x, weight))(x, weight)[0]
    return y


def _results(x: Float[Array, "m i"], weight: Shaped[Array, "o i"]) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    """The product, and the room that is needed for it, which XLA uses again."""
    rows, width = x.shape
    room = kernels.room_for_tiles(rows, width, x.dtype, weight.dtype)
    return jax.ShapeDtypeStruct((rows, len(weight)), jnp.float32), jax.ShapeDtypeStruct((room,), jnp.float32)


def _forward(x: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
    return product(x, weight), (x, weight)


def _backward(kept: tuple[Array, Array], slope: Float[Array, "m o"]) -> tuple[Array, Array]:
    """By XLA: a model is trained only to make the demo pair."""
    x, weight = kept
    return (slope @ weight).astype(x.dtype), (slope.T @ x).astype(weight.dtype)


product.defvjp(_forward, _backward)


def product_where(
    x: Float[Array, "1 i"], weight: Float[Array, "o i"], wanted: Bool[Array, " o"]
) -> Float[Array, "1 o"]:
    """`x @ weight.T` in the places that are wanted, 0 elsewhere; all float32. Rows that are not wanted are not read."""
    result = jax.ShapeDtypeStruct((1, weight.shape[0]), jnp.float32)
    y: Array = jax.ffi.ffi_call(kernels.PRODUCT_WHERE, result)(x, weight, wanted)
    return y


def scaled_product(
    x: Float[Array, "m i"], values: Int8[Array, "o i"], scales: Float[Array, " o"]
) -> Float[Array, "m o"]:
    """`x @ values.T * scales`, summed and returned in float32: an int8 weight with a scale for each of its rows."""
    y: Array = jax.ffi.ffi_call(kernels.SCALED_PRODUCT, _results(x, values))(x, values, scales)[0]
    return y
