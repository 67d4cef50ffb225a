"""Whether the native kernels can be had here, and their registration with XLA."""

import ctypes
import functools
import logging

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from neuroscope_jax.native.compiler import Unavailable
from neuroscope_jax.native.library import KERNELS, QUANTIZED, Sources, begin

logger = logging.getLogger(__name__)

PRODUCT = "neuroscope_product"
PRODUCT_WHERE = "neuroscope_product_where"
ATTENTION = "neuroscope_attention"
GATED = "neuroscope_gated"
SCALED_PRODUCT = "neuroscope_scaled_product"
TARGETS = {KERNELS: (PRODUCT, PRODUCT_WHERE, ATTENTION, GATED), QUANTIZED: (SCALED_PRODUCT,)}


def prepare() -> None:
    """Have the kernels that may be used made meanwhile, where they are not kept yet."""
    if jax.default_backend() == "cpu":
        begin(KERNELS)


def available(sources: Sources = KERNELS) -> bool:
    """Whether there are a library's kernels for the platform in use, and a place for them in what is being computed."""
    return jax.default_backend() == "cpu" and not partitioned() and _registered(sources)


def sources_for(weight: DTypeLike) -> Sources:
    """Of the library with the products of such weights."""
    return QUANTIZED if jnp.dtype(weight) == jnp.int8 else KERNELS


def in_tiles(rows: int, x: DTypeLike, weight: DTypeLike) -> bool:
    """Whether, where kernels are available, products of so many rows of x with such weights are done in tiles."""
    return room_for_tiles(rows, 1, x, weight) > 0


def room_for_tiles(rows: int, width: int, x: DTypeLike, weight: DTypeLike) -> int:
    """The floats for which a product of so many rows needs room to be done in tiles; 0 where it is not done so."""
    ask = begin(sources_for(weight)).result().neuroscope_room_for_tiles
    ask.argtypes, ask.restype = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int, ctypes.c_int], ctypes.c_int64
    return int(ask(rows, width, jnp.dtype(x).itemsize, jnp.dtype(weight).itemsize))


def partitioned() -> bool:
    """Whether XLA deals out the work over several devices: it cannot look into a kernel, and would gather its operands.

    Inside shard_map the work is dealt out already.
    """
    mesh = jax.sharding.get_abstract_mesh()
    return mesh.size > 1 and jax.sharding.AxisType.Auto in mesh.axis_types


@functools.cache
def _registered(sources: Sources) -> bool:
    """Compile and register at the first question; says once why not."""
    try:
        compiled = begin(sources).result()
    except Unavailable as reason:
        logger.info("no native kernels: %s; XLA's own products are used, which are slower for single tokens", reason)
        return False
    for name in TARGETS[sources]:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(compiled, name)), platform="cpu")
    return True
