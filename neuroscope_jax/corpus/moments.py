"""Count, mean and squared deviations of each feature's firings, batch by batch, without losing digits.

A batch's own figures are taken around its own mean and joined to the earlier ones by Chan, Golub and LeVeque's formula
(1979). The running figures are pairs of floats, so that ten thousand small additions do not wear them down.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from neuroscope_jax.corpus.firings import Firings
from neuroscope_jax.pytree import PyTree


class Moments(PyTree):
    """[E] each. `mean + mean_low` is the mean activation over the firings, `m2 + m2_low` Σ (activation - mean)²."""

    count: Int[Array, " E"]
    mean: Float[Array, " E"]
    mean_low: Float[Array, " E"]
    m2: Float[Array, " E"]
    m2_low: Float[Array, " E"]

    @classmethod
    def empty(cls, features: int) -> "Moments":
        """Of no firings."""
        zeros = [jnp.zeros(features, jnp.float32) for _ in range(4)]
        return cls(jnp.zeros(features, jnp.int32), *zeros)


def with_firings(moments: Moments, firings: Firings) -> Moments:
    """The same with a batch of firings added."""
    zeros = jnp.zeros_like(moments.mean)
    count = jnp.zeros_like(moments.count).at[firings.feature].add(firings.active)
    some = jnp.maximum(count, 1)
    rough = zeros.at[firings.feature].add(firings.activation) / some
    deviation = jnp.where(firings.active, firings.activation - rough[firings.feature], 0.0)
    left_over = zeros.at[firings.feature].add(deviation) / some  # what rounding left in the first mean
    m2 = zeros.at[firings.feature].add(deviation**2) - some * left_over**2
    return _joined(moments, count, rough + left_over, m2)


def _joined(old: Moments, count: Int[Array, " E"], mean: Float[Array, " E"], m2: Float[Array, " E"]) -> Moments:
    total = old.count + count
    share = count / jnp.maximum(total, 1)
    delta = jnp.where(count > 0, (mean - old.mean) - old.mean_low, 0.0)
    new_mean = _added(old.mean, old.mean_low, delta * share)
    new_m2 = _added(old.m2, old.m2_low, m2 + delta**2 * share * old.count)
    return Moments(total, *new_mean, *new_m2)


def _added(
    high: Float[Array, " E"], low: Float[Array, " E"], x: Float[Array, " E"]
) -> tuple[Float[Array, " E"], Float[Array, " E"]]:
    """(high + low) + x as a pair again; Knuth's two-sum keeps what the first addition rounds away."""
    x = x + low
    total = high + x
    rest = total - high
    return total, (high - (total - rest)) + (x - rest)
