"""A first look through a rounded encoder: which features cannot be active at a residual, for half of the bytes.

The encoder is most of what a tap reads, and few features are active at a token. With rows w rounded to bfloat16 (w~),

    |x·w − x·w~| ≤ ‖x‖ ‖w − w~‖        (Cauchy and Schwarz)

so a feature whose x·w~ + b + ‖x‖ ‖w − w~‖ is at most its threshold is not active, whatever the exact sum. The others,
little more than the active ones, are multiplied exactly: the activations are, to the bit, those of the whole encoder.
It takes a kernel that can skip rows, so only CPUs gain by it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from neuroscope_jax.native.products import product
from neuroscope_jax.pytree import PyTree

# Of ‖x‖ ‖w‖: what float32 sums can be off by, the rounded and the exact one together. Each is a chain of D / lanes
# additions of relative error 2⁻²⁴, so this is enough up to D = 8,192 with the narrowest vectors.
ROUNDING = 2.0**-12


class Screen(PyTree):
    """The rounded encoder of an SAE, with how far a row may lead astray a residual of norm 1."""

    rounded_rows: Float[Array, "E D"]  # bfloat16
    slack: Float[Array, " E"]

    @classmethod
    def of(cls, encoder_rows: Float[Array, "E D"]) -> "Screen":
        """The screen of an encoder [E, D], float32."""
        rounded = encoder_rows.astype(jnp.bfloat16)
        astray = jnp.linalg.norm(encoder_rows - rounded.astype(jnp.float32), axis=1)
        return cls(rounded, astray + ROUNDING * jnp.linalg.norm(encoder_rows, axis=1))

    def may_be_active(
        self, x: Float[Array, "1 D"], b_enc: Float[Array, " E"], threshold: Float[Array, " E"]
    ) -> Bool[Array, " E"]:
        """False only where x·w + b_enc is at most the threshold; all True where x is not finite."""
        most = product(x, self.rounded_rows)[0] + self.slack * jnp.linalg.norm(x)
        # The bias is added last, as it is to the exact product: rounding keeps the order.
        may_be: Array = ~(most + b_enc <= threshold)
        return may_be
