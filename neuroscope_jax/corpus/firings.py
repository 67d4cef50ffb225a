"""The firings of a batch as a list: all that is counted a feature at a time works on it, not on the dense [B, T, E]."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.pytree import PyTree

LOT = 128  # firings of one token taken at once; more is taken in further rounds

State = TypeVar("State")


class Firings(PyTree):
    """One entry a (token, feature) pair; an entry with activation 0 is none."""

    feature: Int[Array, " n"]
    activation: Float[Array, " n"]
    document: Int[Array, " n"]
    offset: Int[Array, " n"]  # of the token in its document

    @property
    def active(self) -> Bool[Array, " n"]:
        """Where an entry is a firing."""
        return self.activation > 0


def over_firings(
    step: Callable[[State, Firings], State],
    state: State,
    activations: Float[Array, "n E"],
    document: Int[Array, " n"],
    offset: Int[Array, " n"],
) -> State:
    """Fold every firing into `state`, LOT a token in a round and as many rounds as the busiest token needs."""
    lot = min(LOT, activations.shape[1])
    busiest = jnp.max(jnp.sum(activations > 0, axis=1))

    def one_round(carry: tuple[Array, Array, State]) -> tuple[Array, Array, State]:
        done, left, state = carry
        values, features = jax.lax.top_k(left, lot)
        left = jax.lax.cond(done + lot < busiest, _without, lambda left, _: left, left, features)
        along = jnp.broadcast_to(document[:, None], features.shape), jnp.broadcast_to(offset[:, None], features.shape)
        state = step(state, Firings(*(x.reshape(-1) for x in (features, values, *along))))
        return done + lot, left, state

    return jax.lax.while_loop(lambda carry: carry[0] < busiest, one_round, (jnp.int32(0), activations, state))[2]


def _without(left: Float[Array, "n E"], features: Int[Array, "n C"]) -> Float[Array, "n E"]:
    return left.at[jnp.arange(left.shape[0])[:, None], features].set(0.0)
