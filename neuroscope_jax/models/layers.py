"""Building blocks every decoder shares: the one matmul, projections, embedding, RMSNorm, rotary positions.

Dim letters, used in every annotation and einsum of the project:
B batch · T query length · S cache length · D model (d_in) · F mlp · N query heads · K kv heads · G = N/K · H head dim ·
V vocab · L layers · E SAE features (d_sae) · C candidates.
"""

from typing import NamedTuple, overload

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from neuroscope_jax.models.quantized import Int8Weight, QuantizedWeight
from neuroscope_jax.models.sharding import whole
from neuroscope_jax.native import gating, kernels, products
from neuroscope_jax.pytree import tree_map

BLOCK = 256  # rows of a quantised weight that XLA:CPU converts at a time
Weight = Float[Array, "o i"] | QuantizedWeight


def matmul(x: Float[Array, "*rows i"], weight: Weight) -> Float[Array, "*rows o"]:
    """`x @ weight.T`, accumulated in float32 and returned in float32. The only place that multiplies by a weight.

    Weights stay in the checkpoint's own [out, in] layout, and under a float32 x also in its bfloat16: each is a float32
    as it is, as each of a bfloat16 x is under float32 weights. On CPUs few rows, or all, go through the native kernel.
    Rows are flattened first: with a leading axis of one, XLA:CPU copies the weight into another layout at every step.
    """
    rows = x.reshape(-1, x.shape[-1])
    if isinstance(weight, QuantizedWeight):
        y = _quantized(rows, weight)
    elif products.takes(rows.shape[0], x.dtype, weight.dtype.name):
        y = products.product(rows, weight)
    elif rows.shape[0] == 1 and x.dtype == weight.dtype == jnp.bfloat16 and jax.default_backend() == "cpu":
        y = _one_row_bfloat16(rows, weight)
    else:
        wider = jnp.promote_types(x.dtype, weight.dtype)
        y = _contract(rows.astype(wider), weight.astype(wider))
    return y.reshape(*x.shape[:-1], weight.shape[0])


def _quantized(rows: Float[Array, "m i"], weight: QuantizedWeight) -> Float[Array, "m o"]:
    """A product with a weight that is converted on the way.

    XLA:CPU would write all of the converted weight to memory first (145 ms for [9216, 2304]), so it is given some rows
    at a time, which stay in the cache (3 ms).
    """
    if isinstance(weight, Int8Weight) and products.takes(rows.shape[0], rows.dtype, weight.kind):
        return products.scaled_product(rows, weight.values, weight.scales)
    if jax.default_backend() != "cpu" or kernels.partitioned():
        return _converted(rows, weight)
    wide, most = rows.astype(jnp.float32), weight.shape[0] // BLOCK * BLOCK
    blocks = tree_map(lambda x: x[:most].reshape(-1, BLOCK, *x.shape[1:]), weight)
    by_block = jax.lax.map(lambda block: _converted(wide, block), blocks)  # [o / BLOCK, m, BLOCK]
    together = by_block.swapaxes(0, 1).reshape(len(rows), most)
    return jnp.concatenate([together, _converted(wide, tree_map(lambda x: x[most:], weight))], axis=1)


def _converted(rows: Float[Array, "m i"], weight: QuantizedWeight) -> Float[Array, "m o"]:
    """The values are exact in float32 and in bfloat16; an int8 row's scale waits for its sum."""
    if isinstance(weight, Int8Weight):
        return _contract(rows, weight.values.astype(rows.dtype)) * weight.scales
    # Even and odd columns apart, as they lie in the bytes: nothing has to be put in order.
    padded = jnp.pad(rows, ((0, 0), (0, 2 * weight.values.shape[1] - weight.width)))
    even, odd = weight.halves(rows.dtype)
    return _contract(padded[:, 0::2], even) + _contract(padded[:, 1::2], odd)


def precision_of(dtype: DTypeLike) -> jax.lax.Precision | None:
    """float32 means float32 everywhere: by default GPUs multiply it as TF32 and TPUs as bfloat16."""
    return jax.lax.Precision.HIGHEST if dtype == jnp.float32 else None


def _contract(a: Float[Array, "m i"], b: Float[Array, "n i"]) -> Float[Array, "m n"]:
    dims = (((1,), (1,)), ((), ()))
    return jax.lax.dot_general(a, b, dims, precision_of(b.dtype), preferred_element_type=jnp.float32)


def _one_row_bfloat16(row: Float[Array, "1 i"], weight: Float[Array, "o i"]) -> Float[Array, "1 o"]:
    """The row twice, the weight on the left: the one form that reads the bfloat16 weight as it lies on every XLA:CPU.

    A one-row dot becomes a float32 copy of the weight from jax 0.10.2 on (25 to 60 ms for [9216, 2304], here 2 to 5);
    in 0.10.1 two rows on the left cost as much.
    """
    twice = jnp.concatenate([row, row])
    return _contract(weight, twice)[:, 0][None]


@overload
def weight_of(
    module: nn.Module, init: nn.initializers.Initializer, shape: tuple[int], dtype: DTypeLike
) -> Float[Array, " d"]: ...
@overload
def weight_of(
    module: nn.Module, init: nn.initializers.Initializer, shape: tuple[int, int], dtype: DTypeLike
) -> Weight: ...
def weight_of(
    module: nn.Module, init: nn.initializers.Initializer, shape: tuple[int] | tuple[int, int], dtype: DTypeLike
) -> Float[Array, " d"] | Weight:
    """The parameter "weight" of a module, as it was loaded, plain or quantised.

    Linen's own check of its shape traces `init` each time, which takes a fifth of a warm start.
    """
    if module.has_variable("params", "weight"):
        held: Weight = module.get_variable("params", "weight")
        if held.shape == shape:
            return held
    made: Array = module.param("weight", init, shape, dtype)
    return made


class Linear(nn.Module):
    """A bias-free projection with its weight kept [out, in], as Hugging Face stores it."""

    features: int
    dtype: DTypeLike  # of the weight
    result: DTypeLike | None = None  # if not that

    @nn.compact
    def __call__(self, x: Float[Array, "B T i"]) -> Float[Array, "B T o"]:
        init = nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=1, out_axis=0)
        weight = weight_of(self, init, (self.features, x.shape[-1]), self.dtype)
        return matmul(x, weight).astype(self.dtype if self.result is None else self.result)


class Embedding(nn.Module):
    """The tied token embedding [V, D]."""

    vocab_size: int
    features: int
    dtype: DTypeLike

    def setup(self) -> None:
        init = nn.initializers.normal(self.features**-0.5)
        self.weight = weight_of(self, init, (self.vocab_size, self.features), self.dtype)

    def __call__(self, ids: Int[Array, "B T"]) -> Float[Array, "B T D"]:
        table = self.weight
        rows = table.rows(ids) if isinstance(table, QuantizedWeight) else jnp.take(table, ids, axis=0)
        # √D rounded to the activation dtype first, as the released models were trained: 59.75 for 3584 in bfloat16.
        return rows.astype(self.dtype) * jnp.asarray(self.features**0.5, self.dtype)

    def attend(self, x: Float[Array, "B T D"]) -> Float[Array, "B T V"]:
        """Scores against every row of the table."""
        return whole(matmul(x, self.weight))


class RMSNorm(nn.Module):
    """Gemma's RMSNorm: computed in float32, scaled by (1 + weight), then cast back."""

    eps: float
    dtype: DTypeLike

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        weight = weight_of(self, nn.initializers.zeros, (x.shape[-1],), self.dtype)
        x = x.astype(jnp.float32)
        x = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + self.eps)
        return (x * (1.0 + weight.astype(jnp.float32))).astype(self.dtype)


class Turns(NamedTuple):
    """By which angles rotary embedding turns the pairs at each position; the same for all heads and layers."""

    sin: Float[Array, "B T 1 half"]
    cos: Float[Array, "B T 1 half"]

    @classmethod
    def of(cls, positions: Int[Array, "B T"], head_dim: int, theta: float) -> "Turns":
        """Those of a model's heads.

        Angles are float32 always: bfloat16 cannot tell position 256 from 257.
        """
        half = head_dim // 2
        frequency = theta ** (-jnp.arange(half, dtype=jnp.float32) / half)
        angle = positions[:, :, None, None].astype(jnp.float32) * frequency
        both = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)
        # Times the identity, because XLA does not look into products: else it computes every sine again for each head
        # of each layer, a twelfth of the time of a block of 2,048 tokens.
        kept = jnp.matmul(both, jnp.eye(head_dim), precision=jax.lax.Precision.HIGHEST)
        return cls(*jnp.split(kept, 2, axis=-1))


def rotary(x: Float[Array, "B T heads H"], turns: Turns) -> Float[Array, "B T heads H"]:
    """Rotary position embedding, half-split form: dimension i is paired with i + H/2."""
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = first * turns.cos - second * turns.sin, second * turns.cos + first * turns.sin
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def gelu_times(gate: Float[Array, "*rows F"], up: Float[Array, "*rows F"], dtype: DTypeLike) -> Float[Array, "*rows F"]:
    """`gelu(gate) * up` in `dtype`, of float32; GELU by its tanh form."""
    if gating.takes(dtype):
        return gating.gated(gate, up, dtype)
    return jax.nn.gelu(gate.astype(dtype), approximate=True) * up.astype(dtype)


def soft_cap(x: Float[Array, "..."], cap: float | None) -> Float[Array, "..."]:
    """`cap * tanh(x / cap)`, in float32 (float16 and bfloat16 overflow or round here); no cap leaves x as it is."""
    return x if cap is None else cap * jnp.tanh(x.astype(jnp.float32) / cap)
