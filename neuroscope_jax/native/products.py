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
# By the dtypes of x and weight, the rows up to which the kernel is faster than XLA:CPU's own product, measured on
# [9216, 2304] and [2304, 9216]: from here on XLA multiplies at nearly the processor's peak. For the mixed product it
# first writes the weight out in float32.
MOST_ROWS = {("float32", "float32"): 64, ("float32", "bfloat16"): 512, ("bfloat16", "bfloat16"): 128}


def available() -> bool:
    """Whether there are kernels for the platform in use."""
    return jax.default_backend() == "cpu" and _registered()


def takes(rows: int, x_dtype: DTypeLike, weight_dtype: DTypeLike) -> bool:
    """Whether `product` should be used for so many rows of x and weights of these dtypes."""
    kinds = (jnp.dtype(x_dtype).name, jnp.dtype(weight_dtype).name)
    return rows <= MOST_ROWS.get(kinds, 0) and available()


def product(x: Float[Array, "m i"], weight: Float[Array, "o i"]) -> Float[Array, "m o"]:
    """`x @ weight.T`, summed and returned in float32; of dtypes that are a key of MOST_ROWS."""
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
