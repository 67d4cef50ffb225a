"""`product(x, weight)`: the kernel of products.cc as a JAX function, on CPUs where it could be compiled."""

import functools
import logging
import os

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from neuroscope_jax.native.compiler import Unavailable, library

logger = logging.getLogger(__name__)

TARGET = "neuroscope_product"
SWITCH = "NEUROSCOPE_NATIVE"  # 0 leaves everything to XLA
# Rows up to which the kernel is faster than XLA:CPU's own product, measured on [9216, 2304] and [2304, 9216]: from here
# on XLA multiplies at nearly the processor's peak.
MOST_ROWS = {jnp.dtype(jnp.float32): 64, jnp.dtype(jnp.bfloat16): 128}


def takes(rows: int, dtype: DTypeLike) -> bool:
    """Whether `product` should be used for so many rows and weights of this dtype."""
    return rows <= MOST_ROWS.get(jnp.dtype(dtype), 0) and jax.default_backend() == "cpu" and _registered()


def product(x: Float[Array, "m i"], weight: Float[Array, "o i"]) -> Float[Array, "m o"]:
    """`x @ weight.T` of one dtype, float32 or bfloat16, summed and returned in float32."""
    result = jax.ShapeDtypeStruct((x.shape[0], weight.shape[0]), jnp.float32)
    y: Array = jax.ffi.ffi_call(TARGET, result)(x, weight)
    return y


@functools.cache
def _registered() -> bool:
    """Compile and register at the first question; says once why not."""
    if os.environ.get(SWITCH) == "0":
        return False
    try:
        kernels = library(jax.ffi.include_dir())
    except Unavailable as reason:
        logger.info("no native kernels: %s; XLA's own products are used, which are slower for single tokens", reason)
        return False
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(kernels.neuroscope_product), platform="cpu")
    return True
