"""Choosing the next token inside the step. Every option is traced, and the vocabulary is never sorted.

logits ▶ penalties ▶ ÷ temperature ▶ C likeliest ─┬─ the cut lies inside them ▶ draw among those
                                                  └─ it does not              ▶ draw over the whole vocabulary
"""

import secrets
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from neuroscope_jax.engine.requests import MAX_TOP_K, MAX_TOP_LOGPROBS, SamplingOptions
from neuroscope_jax.pytree import PyTree

CANDIDATES = MAX_TOP_K  # C: reading off this many costs 0.7 ms of a 256,000-token vocabulary on CPU, sorting it 60 ms
MAX_STOP_IDS = 8
BISECTIONS = 32  # halvings of the log-probability cut; 24 bits of mantissa and some


class Sampling(PyTree):
    """SamplingOptions and stop ids as device scalars."""

    temperature: Float[Array, ""]
    top_p: Float[Array, ""]
    top_k: Int[Array, ""]
    seed: UInt32[Array, ""]
    presence_penalty: Float[Array, ""]
    frequency_penalty: Float[Array, ""]
    stop_ids: Int[Array, " stops"]  # padded with -1

    @classmethod
    def of(cls, options: SamplingOptions, stop_ids: Sequence[int]) -> "Sampling":
        """Without a seed a random one is taken. Raises ValueError for more than MAX_STOP_IDS stop ids."""
        if len(stop_ids) > MAX_STOP_IDS:
            raise ValueError(f"{len(stop_ids)} stop ids; at most {MAX_STOP_IDS}")
        seed = secrets.randbits(32) if options.seed is None else options.seed & 0xFFFFFFFF
        return cls(
            temperature=jnp.float32(options.temperature),
            top_p=jnp.float32(options.top_p),
            top_k=jnp.int32(options.top_k),
            seed=jnp.uint32(seed),
            presence_penalty=jnp.float32(options.presence_penalty),
            frequency_penalty=jnp.float32(options.frequency_penalty),
            stop_ids=jnp.array([*stop_ids, *[-1] * (MAX_STOP_IDS - len(stop_ids))], jnp.int32),
        )


class Choice(PyTree):
    """The chosen token and what the model itself thought of it and of the likeliest others."""

    id: Int[Array, ""]
    logprob: Float[Array, ""]
    top_ids: Int[Array, " top"]
    top_logprobs: Float[Array, " top"]
    stops: Bool[Array, ""]  # a stop id was chosen


def choose(
    logits: Float[Array, " V"], counts: Int[Array, " V"], sampling: Sampling, position: Int[Array, ""]
) -> Choice:
    """Pick the token after `position`. The same seed and position give the same draw, whatever else is running."""
    with jax.named_scope("sample"):
        logprobs = jax.nn.log_softmax(logits)
        top_logprobs, top_ids = jax.lax.top_k(logprobs, min(MAX_TOP_LOGPROBS, logits.size))
        penalised = (
            logits - sampling.presence_penalty * (counts > 0) - sampling.frequency_penalty * counts.astype(logits.dtype)
        )
        chosen = jax.lax.cond(
            sampling.temperature > 0,
            lambda: _draw(penalised / sampling.temperature, sampling, _key(sampling, position)),
            lambda: jax.lax.top_k(penalised, 1)[1][0],
        )
        stops = jnp.any(chosen == sampling.stop_ids)
    return Choice(chosen, logprobs[chosen], top_ids, top_logprobs, stops)


def _key(sampling: Sampling, position: Int[Array, ""]) -> Key[Array, ""]:
    return jax.random.fold_in(jax.random.key(sampling.seed), position)


def _draw(logits: Float[Array, " V"], sampling: Sampling, key: Key[Array, ""]) -> Int[Array, ""]:
    """One token from the top_k likeliest, and of those from the smallest set that holds top_p of their probability."""
    values, ids = jax.lax.top_k(logits, min(CANDIDATES, logits.size))
    place = jnp.arange(values.size)
    considered = (sampling.top_k == 0) | (place < sampling.top_k)
    total = jnp.where(
        sampling.top_k == 0, jax.nn.logsumexp(logits), jax.nn.logsumexp(jnp.where(considered, values, -jnp.inf))
    )
    probability = jnp.where(considered, jnp.exp(values - total), 0.0)
    before = jnp.cumsum(probability) - probability
    nucleus = considered & ((before < sampling.top_p) | (place == 0))
    cut_inside = (sampling.top_k > 0) | (values.size == logits.size) | (before[-1] >= sampling.top_p)
    drawn: Int[Array, ""] = jax.lax.cond(
        cut_inside,
        lambda: ids[jax.random.categorical(key, jnp.where(nucleus, values, -jnp.inf))],
        lambda: jax.random.categorical(
            key, jnp.where(logits >= _nucleus_cut(logits, sampling.top_p), logits, -jnp.inf)
        ),
    )
    return drawn


def _nucleus_cut(logits: Float[Array, " V"], top_p: Float[Array, ""]) -> Float[Array, ""]:
    """The highest cut such that the tokens at or above it hold top_p of the probability, by bisection."""
    probability = jax.nn.softmax(logits)

    def halve(_: Int[Array, ""], bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        enough = jnp.sum(jnp.where(logits >= middle, probability, 0.0)) >= top_p
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    low, _ = jax.lax.fori_loop(0, BISECTIONS, halve, (jnp.min(logits), jnp.max(logits)))
    return jnp.where(top_p < 1, low, -jnp.inf)
