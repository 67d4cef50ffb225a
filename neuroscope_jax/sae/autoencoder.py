"""SparseAutoencoder: the encoder half of a sparse autoencoder, as a pytree that lives on the model's device.

The decoder only matters for reconstruction and steering, so it is not loaded.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Float

from neuroscope_jax.models.layers import matmul
from neuroscope_jax.native import kernels
from neuroscope_jax.native.products import product_where
from neuroscope_jax.pytree import PyTree
from neuroscope_jax.sae.screen import Screen


def jump_relu(pre: Float[Array, "*rows E"], threshold: Float[Array, " E"]) -> Float[Array, "*rows E"]:
    """Values above their feature's threshold pass unchanged, the rest are zero. Strict, as the SAEs were trained."""
    return pre * (pre > threshold)


class SparseAutoencoder(PyTree):
    """JumpReLU encoder, float32 throughout: bfloat16 or TF32 products would flip features near their threshold."""

    encoder_rows: Float[Array, "E D"]  # W_enc transposed: [out, in] like every weight here
    b_enc: Float[Array, " E"]
    threshold: Float[Array, " E"]
    input_scale: Float[Array, ""]  # divisor of the residual where input_norm is "scalar"
    input_norm: Literal["none", "rms", "scalar"] = struct.field(pytree_node=False, default="none")
    screen: Screen | None = None

    @property
    def d_in(self) -> int:
        """Width of the residual stream it reads."""
        return self.encoder_rows.shape[1]

    @property
    def d_sae(self) -> int:
        """Number of features."""
        return self.encoder_rows.shape[0]

    @property
    def W_enc(self) -> Float[Array, "D E"]:
        """The encoder in the orientation of the papers and files."""
        return self.encoder_rows.T

    def normalised(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows D"]:
        """The residual as this SAE wants it, in float32 unless that is as it is.

        Gemma Scope's released weights take it raw (arXiv 2408.05147, App. A).
        """
        if self.input_norm == "none":
            return x
        x = x.astype(jnp.float32)
        if self.input_norm == "rms":
            return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True))
        return x / self.input_scale

    def encode(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows E"]:
        """Feature activations of residual vectors: zero, or above the feature's threshold."""
        with jax.named_scope("sae_encode"):
            x = self.normalised(x)
            if self.screen is not None and x.ndim == 1:
                return self._encode_screened(self.screen, x[None].astype(jnp.float32))
            return jump_relu(matmul(x, self.encoder_rows) + self.b_enc, self.threshold)

    def screened(self) -> "SparseAutoencoder":
        """The same SAE, quicker at single residuals where that can be had, for half as much memory again."""
        return self.replace(screen=Screen.of(self.encoder_rows)) if kernels.available() else self

    def _encode_screened(self, screen: Screen, x: Float[Array, "1 D"]) -> Float[Array, " E"]:
        wanted = screen.may_be_active(x, self.b_enc, self.threshold)
        pre = product_where(x, self.encoder_rows, wanted)[0] + self.b_enc
        return jnp.where(wanted, jump_relu(pre, self.threshold), 0.0)
