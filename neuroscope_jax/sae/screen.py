"""A first look through a rounded encoder: which features cannot be active at a residual, for half of the bytes.

The encoder is most of what a tap reads, and few features are active at a token. With rows w rounded to bfloat16 (w~),

    |x·w − x·w~| ≤ ‖x‖ ‖w − w~‖        (Cauchy and Schwarz)

so a feature whose x·w~ + b + ‖x‖ ‖w − w~‖ is at most its threshold is not active, whatever the exact sum. The others,
little more than the active ones, are multiplied exactly: the activations are, to the bit, those of the whole encoder.
It takes a kernel that can skip rows, so only CPUs gain by it.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from neuroscope_jax.native.products import product
from neuroscope_jax.pytree import PyTree


class Screen(PyTree):
    """The rounded encoder of an SAE, with how far a row may lead astray a residual of norm 1."""

    rounded_rows: Float[Array, "E D"]  # bfloat16
    slack: Float[Array, " E"]

    @classmethod
    def of(cls, encoder_rows: Float[Array, "E D"]) -> "Screen":
        """The screen of an encoder [E, D], float32."""
        screen: Screen = _screen(encoder_rows)
        return screen

    def may_be_active(
        self, x: Float[Array, "1 D"], b_enc: Float[Array, " E"], threshold: Float[Array, " E"]
    ) -> Bool[Array, " E"]:
        """False only where x·w + b_enc is at most the threshold; all True where x is not finite."""
        most = product(x, self.rounded_rows)[0] + self.slack * jnp.linalg.norm(x)
        # The bias is added last, as it is to the exact product: rounding keeps the order.
        may_be: Array = ~(most + b_enc <= threshold)
        return may_be


@jax.jit
def _screen(encoder_rows: Float[Array, "E D"]) -> Screen:
    rounded = encoder_rows.astype(jnp.bfloat16)
    astray = jnp.linalg.norm(encoder_rows - rounded.astype(jnp.float32), axis=1)
    # What float32 sums can be off by, in ‖x‖ ‖w‖: the rounded and the exact product are chains of at most D / 4
    # additions each, of relative error 2⁻²⁴; as much again is for the norms.
    rounding = (encoder_rows.shape[1] + 64) * 2.0**-24
    return Screen(rounded, astray + rounding * jnp.linalg.norm(encoder_rows, axis=1))
