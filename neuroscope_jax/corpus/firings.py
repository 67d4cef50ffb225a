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
    """Fold every firing into `state`, LOT a token in a round, until a round leaves no token with more."""
    lot = min(LOT, activations.shape[1])

    def one_round(carry: tuple[Array, Array, State]) -> tuple[Array, Array, State]:
        left, _, state = carry
        values, features = jax.lax.top_k(left, lot)
        # Behind the barrier nobody sees that only the last value is looked at: XLA:CPU would sort all E instead. To
        # count the firings beforehand would be one more pass over all E.
        more = jnp.any(jax.lax.optimization_barrier(values)[:, -1] > 0)
        left = jax.lax.cond(more, _without, lambda left, _: left, left, features)
        along = jnp.broadcast_to(document[:, None], features.shape), jnp.broadcast_to(offset[:, None], features.shape)
        state = step(state, Firings(*(x.reshape(-1) for x in (features, values, *along))))
        return left, more, state

    return jax.lax.while_loop(lambda carry: carry[1], one_round, (activations, jnp.array(True), state))[2]


def _without(left: Float[Array, "n E"], features: Int[Array, "n C"]) -> Float[Array, "n E"]:
    return left.at[jnp.arange(left.shape[0])[:, None], features].set(0.0)
