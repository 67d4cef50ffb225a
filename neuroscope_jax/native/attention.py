"""`attend_cached(…)`: attention.h as a JAX function, on CPUs where it could be compiled."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from neuroscope_jax.native import kernels

MOST_QUERIES = 8  # from here on XLA's products of matrices are faster
DTYPES = ("float32", "bfloat16")


def takes(batch: int, queries: int, dtype: DTypeLike) -> bool:
    """Whether `attend_cached` should be used for so many sequences of so many queries."""
    return batch == 1 and queries <= MOST_QUERIES and jnp.dtype(dtype).name in DTYPES and kernels.available()


def attend_cached(
    query: Float[Array, "1 T N H"],
    key: Float[Array, "1 S K H"],
    value: Float[Array, "1 S K H"],
    start: Int[Array, ""],
    scale: float,
    cap: float | None,
    window: int | None,
) -> Float[Array, "1 T N H"]:
    """Causal attention of queries at positions start, start + 1, …; all of one dtype, computed and returned in float32.

    Position j is in slot j % S; beyond S that takes S a multiple of 64 and at least window + T. Only slots that a query
    may see are read: j <= i, and j > i - window where there is one. The leading axis is there because XLA copies the
    cache to take it off.
    """
    call = jax.ffi.ffi_call(kernels.ATTENTION, jax.ShapeDtypeStruct(query.shape, jnp.float32))
    attributes = {"scale": np.float32(scale), "cap": np.float32(cap or 0), "window": np.int64(window or 0)}
    mixed: Array = call(query, key, value, start, **attributes)
    return mixed
