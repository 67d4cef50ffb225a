"""Two sets of weights of one model on the same tokens: what is predicted, and what the SAE sees."""

import functools
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.models.weights import Params
from neuroscope_jax.pytree import PyTree
from neuroscope_jax.sae.autoencoder import SparseAutoencoder

ROWS = 32  # positions whose logits are held at once


class Sums(PyTree):
    """Over the tokens that count; of the quantised model where nothing else is said."""

    tokens: Float[Array, ""]
    agreeing: Float[Array, ""]  # most likely next token is the plain model's
    kl: Float[Array, ""]  # of the plain model's next-token distribution to this one's, nats
    overlap: Float[Array, ""]  # share of the top features that both have, over tokens at which either has any
    with_features: Float[Array, ""]  # those tokens
    activation_error: Float[Array, ""]  # |difference|, over all features: where neither is active it is 0
    activation: Float[Array, ""]  # of the plain model's features
    plain_active: Float[Array, ""]
    active: Float[Array, ""]
    residual_error: Float[Array, ""]  # |difference| / |plain residual|, Euclidean


@functools.partial(jax.jit, static_argnames=("model", "layer", "top_k"))
def compare_step(
    model: nn.Module,
    plain: Params,
    quantised: Params,
    sae: SparseAutoencoder,
    ids: Int[Array, "1 T"],
    counts: Bool[Array, " T"],
    layer: int,
    top_k: int,
) -> Sums:
    """Run both over T tokens, a multiple of ROWS, and sum up what differs at those that count."""
    (hidden, residual), (hidden_q, residual_q) = (_forward(model, params, ids, layer) for params in (plain, quantised))
    agreeing, kl = _next_tokens(model, plain, quantised, hidden, hidden_q)
    features, features_q = sae.encode(residual), sae.encode(residual_q)
    overlap, either, error = compare_features(features, features_q, top_k)
    counted = functools.partial(jnp.sum, where=counts)
    return Sums(
        tokens=counted(jnp.ones_like(kl)),
        agreeing=counted(agreeing),
        kl=counted(kl),
        overlap=counted(overlap),
        with_features=counted(either),
        activation_error=counted(error),
        activation=counted(features.sum(-1)),
        plain_active=counted((features > 0).sum(-1).astype(jnp.float32)),
        active=counted((features_q > 0).sum(-1).astype(jnp.float32)),
        residual_error=counted(jnp.linalg.norm(residual_q - residual, axis=-1) / jnp.linalg.norm(residual, axis=-1)),
    )


def compare_features(
    plain: Float[Array, "T E"], other: Float[Array, "T E"], top_k: int
) -> tuple[Float[Array, " T"], Float[Array, " T"], Float[Array, " T"]]:
    """At each token: share of the top features that both have, whether either has any, sum of |differences|.

    The share is of the longer list, where one model has fewer than `top_k` active features than the other; 0 where
    neither has any.
    """
    mine, its = _top(plain, top_k), _top(other, top_k)
    most = jnp.maximum(mine.sum(-1), its.sum(-1))
    overlap = (mine & its).sum(-1) / jnp.maximum(most, 1)
    return overlap, (most > 0).astype(jnp.float32), jnp.abs(other - plain).sum(-1)


def _top(activations: Float[Array, "T E"], top_k: int) -> Bool[Array, "T E"]:
    """Which features are active and among the strongest."""
    strongest, indices = jax.lax.top_k(activations, top_k)
    tokens = jnp.arange(len(activations))[:, None]
    return jnp.zeros(activations.shape, bool).at[tokens, indices].set(strongest > 0)


def _forward(
    model: nn.Module, params: Params, ids: Int[Array, "1 T"], layer: int
) -> tuple[Float[Array, "T D"], Float[Array, "T D"]]:
    """The residual stream after the last block, and at the tapped one in float32."""
    positions = jnp.arange(ids.shape[1])[None]
    (hidden, _), sown = cast(Any, model.apply({"params": params}, ids, positions, mutable=["intermediates"]))
    return hidden[0], sown["intermediates"][f"layers_{layer}"]["resid_post"][0][0].astype(jnp.float32)


def _next_tokens(
    model: nn.Module, plain: Params, quantised: Params, hidden: Float[Array, "T D"], hidden_q: Float[Array, "T D"]
) -> tuple[Float[Array, " T"], Float[Array, " T"]]:
    """At each token: whether the most likely next one is the same, and the divergence in nats. Some rows at a time."""

    def logprobs(params: Params, rows: Float[Array, "n D"]) -> Float[Array, "n V"]:
        logits = cast(Array, model.apply({"params": params}, rows[None], method="logits"))
        return jax.nn.log_softmax(logits[0])

    def compare(rows: tuple[Array, Array]) -> tuple[Array, Array]:
        p, q = logprobs(plain, rows[0]), logprobs(quantised, rows[1])
        same = (jnp.argmax(p, -1) == jnp.argmax(q, -1)).astype(jnp.float32)
        return same, jnp.sum(jnp.exp(p) * (p - q), axis=-1)

    same, kl = jax.lax.map(compare, tuple(h.reshape(-1, ROWS, h.shape[-1]) for h in (hidden, hidden_q)))
    return same.reshape(-1), kl.reshape(-1)
