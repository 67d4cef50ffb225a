"""`gated(gate, up, dtype)`: gated.h as a JAX function, on CPUs where it could be compiled."""

import functools

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from neuroscope_jax.native import kernels

DTYPES = ("float32", "bfloat16")


def takes(dtype: DTypeLike) -> bool:
    """Whether `gated` should be used where it gives such numbers."""
    return jnp.dtype(dtype).name in DTYPES and kernels.available()


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def gated(gate: Float[Array, "*rows F"], up: Float[Array, "*rows F"], dtype: DTypeLike) -> Float[Array, "*rows F"]:
    """gelu(gate) * up by the tanh form, of float32 and rounded to `dtype` once."""
    y: Array = jax.ffi.ffi_call(kernels.GATED, jax.ShapeDtypeStruct(gate.shape, dtype))(gate, up)
    return y


def _forward(gate: Array, up: Array, dtype: DTypeLike) -> tuple[Array, tuple[Array, Array]]:
    return gated(gate, up, dtype), (gate, up)


def _backward(dtype: DTypeLike, kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    """By XLA: a model is trained only to make the demo pair."""
    slopes: tuple[Array, Array] = jax.vjp(lambda gate, up: jax.nn.gelu(gate) * up, *kept)[1](slope.astype(jnp.float32))
    return slopes


gated.defvjp(_forward, _backward)
