"""Which active features deserve one of the K places: the calibration filter, part of the compiled step."""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.config import FilterMode
from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.pytree import PyTree

EPSILON = 1e-6  # in the units of a variance
# Beyond so many standard deviations a score says no more than "far outside what was seen": activations have a long
# right tail and a calibration has an end, so larger figures would order features by how thinly they were calibrated.
MAX_SURPRISE = 8.0
PRIOR_FIRINGS = 10  # how many firings the prior on a feature's variance is worth
SUPPORT = 100  # firings from which a feature's own coefficient of variation helps to form that prior
# Of an exponential distribution, the least presuming one of a positive number with a known mean; where no feature has
# support.
PRIOR_VARIATION = 1.0


class FeatureFilter(PyTree):
    """Statistics and settings of one tap, all traced: another mode, threshold or calibration compiles nothing."""

    suppressed: Bool[Array, " E"]  # fire too often to say anything about a token
    mean: Float[Array, " E"]  # of the activation when it fires
    scale: Float[Array, " E"]  # 1 / standard deviation of the same, 0 for a feature that never fired
    firings: Int[Array, " E"]  # in the calibration
    by_surprise: Bool[Array, ""]  # rank by surprise instead of activation
    calibrated: bool = struct.field(pytree_node=False, default=False)

    @classmethod
    def of(cls, stats: FeatureStats | None, d_sae: int, mode: FilterMode, threshold: float) -> "FeatureFilter":
        """The filter of a mode; without statistics it suppresses nothing and ranks by activation.

        frequency and combined suppress what fires on more than `threshold` of the tokens and rank by activation,
        surprise ranks by surprise, none does neither.
        """
        if stats is None:
            zeros = jnp.zeros(d_sae)
            return cls(zeros > 0, zeros, zeros, zeros.astype(jnp.int32), jnp.asarray(False))
        suppresses = mode in ("frequency", "combined")
        return cls(
            suppressed=jnp.asarray(suppresses & (stats.firing_rate > threshold)),
            mean=jnp.asarray(stats.mean_activation, jnp.float32),
            scale=jnp.asarray(_scale(stats), jnp.float32),
            firings=jnp.asarray(np.minimum(stats.count, np.iinfo(np.int32).max), jnp.int32),
            by_surprise=jnp.asarray(mode == "surprise"),
            calibrated=True,
        )

    def surprise(self, activations: Float[Array, " E"]) -> Float[Array, " E"]:
        """z-score of an activation among the feature's own firings, at most MAX_SURPRISE from 0.

        0 for a feature that never fired: the z-scores of every feature average 0, so that is what to expect of one of
        which nothing is known. It ranks with the typical, above those weaker than usual, and is told from them by its
        firings.
        """
        return jnp.clip((activations - self.mean) * self.scale, -MAX_SURPRISE, MAX_SURPRISE)


def _scale(stats: FeatureStats) -> np.ndarray:
    """1 / sqrt(variance + EPSILON) [E], the variance shrunk towards the SAE's usual ratio of deviation to mean.

    Many firings leave a feature's own variance as it is; one firing, whose variance is 0, gets about the usual one.
    """
    n, mean, variance = stats.count, stats.mean_activation, stats.activation_variance
    supported = n >= SUPPORT
    variation = np.sqrt(variance[supported]) / mean[supported]
    usual = np.median(variation) if supported.any() else PRIOR_VARIATION
    shrunk = (n * variance + PRIOR_FIRINGS * (usual * mean) ** 2) / (n + PRIOR_FIRINGS)
    return np.where(n > 0, 1 / np.sqrt(shrunk + EPSILON), 0.0)
