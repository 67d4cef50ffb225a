"""Which active features deserve one of the K places: the calibration filter, part of the compiled step."""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float

from neuroscope_jax.config import FilterMode
from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.pytree import PyTree

EPSILON = 1e-6


class FeatureFilter(PyTree):
    """Statistics and settings of one tap, all traced: another mode or threshold compiles nothing."""

    firing_rate: Float[Array, " E"]
    mean: Float[Array, " E"]  # of the activation when it fires
    variance: Float[Array, " E"]
    threshold: Float[Array, ""]  # firing rate above which a feature is suppressed
    by_surprise: Bool[Array, ""]  # rank by z-score instead of activation
    calibrated: bool = struct.field(pytree_node=False, default=False)

    @classmethod
    def of(cls, stats: FeatureStats | None, d_sae: int, mode: FilterMode, threshold: float) -> "FeatureFilter":
        """The filter of a mode; without statistics it suppresses nothing and ranks by activation."""
        zeros = np.zeros(d_sae, np.float32)
        suppresses = stats is not None and mode in ("frequency", "combined")
        return cls(
            firing_rate=jnp.asarray(zeros if stats is None else stats.firing_rate),
            mean=jnp.asarray(zeros if stats is None else stats.mean_activation),
            variance=jnp.asarray(zeros if stats is None else stats.activation_variance),
            threshold=jnp.float32(threshold if suppresses else np.inf),
            by_surprise=jnp.asarray(stats is not None and mode == "surprise"),
            calibrated=stats is not None,
        )

    def suppressed(self) -> Bool[Array, " E"]:
        """Features that fire too often to say anything about a token."""
        return self.firing_rate > self.threshold

    def surprise(self, activations: Float[Array, " E"]) -> Float[Array, " E"]:
        """z-score of an activation among the feature's own firings."""
        return (activations - self.mean) / jnp.sqrt(self.variance + EPSILON)
