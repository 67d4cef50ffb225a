"""Weights of 8 or 4 bits under float activations: symmetric, rounded to nearest even.

    int8   a row of [o, i]    q q q q q q q …  (a byte each)                × one float32 scale a row
    int4   a row of [o, i]    qq qq qq … | qq qq qq … | …  (two a byte)     × one bfloat16 scale a group of 32
           a byte             bits 0 to 3: column 2j, bits 4 to 7: column 2j + 1, each in two's complement

A scale is the largest magnitude of its row or group divided by 127 or 7, so that a weight is off by at most half of it.
int4's scales have 5 significant bits: times a value of 3 they are exact in bfloat16, and every form of the product
multiplies the same numbers. What is not finite makes its scale so too and is not hidden.
"""

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import DTypeLike
from jaxtyping import Array, BFloat16, Float, Int, Int8

from neuroscope_jax.pytree import PyTree

Kind = Literal["int8", "int4"]
GROUP = 32  # columns that share a scale in int4


class Int8Weight(PyTree):
    """A weight [o, i] of 8 bits: row o is `values[o] * scales[o]`."""

    kind: ClassVar[Kind] = "int8"
    values: Int8[Array, "o i"]
    scales: Float[Array, " o"]

    @property
    def shape(self) -> tuple[int, int]:
        """[o, i] of the weight."""
        return self.values.shape[0], self.values.shape[1]

    def rows(self, ids: Int[Array, "*n"]) -> Float[Array, "*n i"]:
        """Single rows in float32."""
        return self.values[ids].astype(jnp.float32) * self.scales[ids][..., None]


class Int4Weight(PyTree):
    """A weight [o, i] of 4 bits; its rows are filled up with zeros to whole groups."""

    kind: ClassVar[Kind] = "int4"
    values: Int8[Array, "o pairs"]
    scales: BFloat16[Array, "o groups"]
    width: int = struct.field(pytree_node=False)  # i

    @property
    def shape(self) -> tuple[int, int]:
        """[o, i] of the weight."""
        return self.values.shape[0], self.width

    def halves(self, dtype: DTypeLike) -> tuple[Float[Array, "o pairs"], Float[Array, "o pairs"]]:
        """The even and the odd columns, zeros behind them, exact in float32 and in bfloat16."""
        scales = jnp.repeat(self.scales.astype(dtype), GROUP // 2, axis=1)
        even, odd = self.values << 4 >> 4, self.values >> 4
        return even.astype(dtype) * scales, odd.astype(dtype) * scales

    def rows(self, ids: Int[Array, "*n"]) -> Float[Array, "*n i"]:
        """Single rows in float32."""
        flat = ids.reshape(-1)
        some = Int4Weight(self.values[flat], self.scales[flat], self.width)
        whole = jnp.stack(some.halves(jnp.float32), axis=-1).reshape(*ids.shape, -1)
        return whole[..., : self.width]


QuantizedWeight = Int8Weight | Int4Weight


def quantize(weight: Float[Array, "o i"], kind: Kind) -> QuantizedWeight:
    """A weight in so many bits, without a float32 copy of it on the way."""
    made: QuantizedWeight = _int8(weight) if kind == "int8" else _int4(weight)
    return made


def dequantize(weight: QuantizedWeight) -> Float[Array, "o i"]:
    """The numbers that a quantised weight stands for, float32."""
    return weight.rows(jnp.arange(weight.shape[0]))


@jax.jit
def _int8(weight: Float[Array, "o i"]) -> Int8Weight:
    scales = _largest(weight) / 127
    return Int8Weight(_rounded(weight, scales[:, None]), scales)


@jax.jit
def _int4(weight: Float[Array, "o i"]) -> Int4Weight:
    width = weight.shape[1]
    grouped = jnp.pad(weight, ((0, 0), (0, -width % GROUP))).reshape(weight.shape[0], -1, GROUP)
    scales = jax.lax.reduce_precision(_largest(grouped) / 7, exponent_bits=8, mantissa_bits=4)
    values = jnp.clip(_rounded(grouped, scales[..., None]), -7, 7).reshape(weight.shape[0], -1)
    pairs = (values[:, 0::2] & 15) | (values[:, 1::2] << 4)
    return Int4Weight(pairs, scales.astype(jnp.bfloat16), width)


def _largest(x: Float[Array, "*many n"]) -> Float[Array, "*many"]:
    return jnp.max(jnp.abs(x.astype(jnp.float32)), axis=-1, initial=0)


def _rounded(x: Float[Array, "*many n"], scales: Float[Array, "*many 1"]) -> Int8[Array, "*many n"]:
    return jnp.round(jnp.where(scales > 0, x.astype(jnp.float32) / scales, 0)).astype(jnp.int8)
