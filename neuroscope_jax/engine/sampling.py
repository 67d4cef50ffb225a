"""Choosing the next token inside the step. Every option is traced, and the vocabulary is never sorted.

logits ▶ bias ▶ penalties ▶ ÷ temperature ▶ C likeliest ─┬─ the cut lies inside them ▶ draw among those
                                                         └─ it does not              ▶ draw over the whole vocabulary
"""

import secrets
import zlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from neuroscope_jax.engine.requests import MAX_LOGIT_BIASES, MAX_TOP_K, MAX_TOP_LOGPROBS, SamplingOptions
from neuroscope_jax.pytree import PyTree

CANDIDATES = MAX_TOP_K  # C: reading off this many costs 0.7 ms of a 256,000-token vocabulary on CPU, sorting it 60 ms
MAX_STOP_IDS = 8
ROW = 512
COLDEST = 1e-6  # temperatures below are greedy; dividing by them would overflow
BELOW_ONE = 1 - 2**-23
NO_TOKEN = 2**31 - 1  # beyond every vocabulary: what is added there is dropped
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
    bias_ids: Int[Array, " biases"]  # padded with NO_TOKEN
    biases: Float[Array, " biases"]

    @classmethod
    def of(cls, options: SamplingOptions, stop_ids: Sequence[int]) -> "Sampling":
        """Without a seed a random one is taken. Raises ValueError for more than MAX_STOP_IDS stop ids."""
        if len(stop_ids) > MAX_STOP_IDS:
            raise ValueError(f"{len(stop_ids)} stop ids; at most {MAX_STOP_IDS}")
        bias_ids, biases = _padded(options.logit_bias)
        return cls(
            temperature=jnp.float32(options.temperature),
            top_p=jnp.float32(options.top_p),
            top_k=jnp.int32(options.top_k),
            seed=jnp.uint32(_seed(options.seed)),
            presence_penalty=jnp.float32(options.presence_penalty),
            frequency_penalty=jnp.float32(options.frequency_penalty),
            stop_ids=jnp.array([*stop_ids, *[-1] * (MAX_STOP_IDS - len(stop_ids))], jnp.int32),
            bias_ids=bias_ids,
            biases=biases,
        )


class Choice(PyTree):
    """The chosen token and what the model itself thought of it and of the likeliest others."""

    id: Int[Array, "*places"]
    logprob: Float[Array, "*places"]
    top_ids: Int[Array, "*places top"]
    top_logprobs: Float[Array, "*places top"]
    stops: Bool[Array, "*places"]  # a stop id was chosen


def choose(
    logits: Float[Array, " V"], counts: Int[Array, " V"], sampling: Sampling, position: Int[Array, ""]
) -> Choice:
    """Pick the token after `position`. The same seed and position give the same draw, whatever else is running."""
    with jax.named_scope("sample"):
        logprobs = jax.nn.log_softmax(logits)
        top_logprobs, top_ids = jax.lax.top_k(logprobs, min(MAX_TOP_LOGPROBS, logits.size))
        biased = logits.at[sampling.bias_ids].add(sampling.biases.astype(logits.dtype), mode="drop")
        penalised = (
            biased - sampling.presence_penalty * (counts > 0) - sampling.frequency_penalty * counts.astype(logits.dtype)
        )
        greedy = sampling.temperature < COLDEST
        scaled = penalised / jnp.where(greedy, 1.0, sampling.temperature)
        # Behind the barrier: XLA would merge `ids[0]` into the top_k and then sort the whole vocabulary (28 ms). With
        # more than the top_k in it: a barrier over nothing else crashes XLA where the model is split over devices.
        values, ids, scaled = jax.lax.optimization_barrier(
            (*jax.lax.top_k(scaled, min(CANDIDATES, logits.size)), scaled)
        )
        cut = _cut(scaled, values, sampling)
        uniform = jax.random.uniform(jax.random.fold_in(jax.random.key(sampling.seed), position))
        drawn = _draw(scaled, cut, uniform)
        # Sums rounded in another order could, once in many millions, point beside the tokens that may be drawn.
        chosen = jnp.where(greedy | ~(scaled[drawn] >= cut), ids[0], drawn)
        stops = jnp.any(chosen == sampling.stop_ids)
    return Choice(chosen, logprobs[chosen], top_ids, top_logprobs, stops)


def choose_in_turn(
    logits: Float[Array, "R V"],
    proposed: Int[Array, " P"],
    counts: Int[Array, " V"],
    sampling: Sampling,
    positions: Int[Array, " R"],
) -> tuple[Choice, Int[Array, " V"], Int[Array, ""]]:
    """Pick the tokens after R = P + 1 positions, each while those before it are the proposed ones and go on.

    Returns the choices, the counts with those that count, and how many do; the others are zeros.
    """
    top = min(MAX_TOP_LOGPROBS, logits.shape[-1])
    nothing = Choice(jnp.int32(0), jnp.float32(0), jnp.zeros(top, jnp.int32), jnp.zeros(top), jnp.bool_(False))

    def turn(
        carried: tuple[Array, Array], place: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Choice, Array]]:
        (counts, counting), (row, next_id, position) = carried, place
        choice = jax.lax.cond(counting, lambda: choose(row, counts, sampling, position), lambda: nothing)
        counts = counts.at[choice.id].add(counting.astype(counts.dtype))
        return (counts, counting & (choice.id == next_id) & ~choice.stops), (choice, counting)

    behind_last = jnp.full(1, NO_TOKEN, proposed.dtype)
    places = (logits, jnp.concatenate([proposed, behind_last]), positions)
    (counts, _), (choices, counting) = jax.lax.scan(turn, (counts, jnp.bool_(True)), places)
    return choices, counts, jnp.sum(counting)


def _seed(seed: int | None) -> int:
    """32 bits, a small seed's own; without a seed random ones."""
    if seed is None:
        return secrets.randbits(32)
    return seed if 0 <= seed < 2**32 else zlib.crc32(seed.to_bytes(16, "little", signed=True))


def _padded(logit_bias: Sequence[tuple[int, float]]) -> tuple[Int[Array, " biases"], Float[Array, " biases"]]:
    """Always as many, so that every request runs the same program."""
    ids, values = np.full(MAX_LOGIT_BIASES, NO_TOKEN, np.int32), np.zeros(MAX_LOGIT_BIASES, np.float32)
    for i, (token_id, value) in enumerate(logit_bias):
        ids[i], values[i] = token_id, value
    return jnp.asarray(ids), jnp.asarray(values)


def _cut(logits: Float[Array, " V"], values: Float[Array, " C"], sampling: Sampling) -> Float[Array, ""]:
    """The lowest logit that may be drawn: of the top_k likeliest tokens, the smallest set that holds top_p.

    `values` are the C highest logits in order. Tokens tied with the last one of a cut stay in.
    """
    considered = (sampling.top_k == 0) | (jnp.arange(values.size) < sampling.top_k)
    within_k = jax.nn.logsumexp(jnp.where(considered, values, -jnp.inf))
    total = jnp.where(sampling.top_k == 0, jax.nn.logsumexp(logits), within_k)
    probability = jnp.where(considered, jnp.exp(values - total), 0.0)
    before = jnp.cumsum(probability) - probability
    kept = considered & ((before < sampling.top_p) | (jnp.arange(values.size) == 0))
    read_off = jnp.min(jnp.where(kept, values, jnp.inf))
    uncut = (sampling.top_k == 0) & (sampling.top_p >= 1)
    # All C are kept and there may be more: the cut lies further down.
    below = (sampling.top_k == 0) & ~uncut & (before[-1] + probability[-1] < sampling.top_p)
    cut = jax.lax.cond(below, lambda: _bisected_cut(logits, sampling.top_p), lambda: read_off)
    return jnp.where(uncut, -jnp.inf, cut)


def _bisected_cut(logits: Float[Array, " V"], top_p: Float[Array, ""]) -> Float[Array, ""]:
    """The highest cut such that the tokens at or above it hold top_p of the probability."""
    probability = jax.nn.softmax(logits)

    def halve(_: Int[Array, ""], bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        enough = jnp.sum(jnp.where(logits >= middle, probability, 0.0)) >= top_p
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    bounds = (jnp.min(logits), jnp.max(logits))
    low: Float[Array, ""] = jax.lax.fori_loop(0, BISECTIONS, halve, bounds)[0]
    return low


def _draw(logits: Float[Array, " V"], cut: Float[Array, ""], uniform: Float[Array, ""]) -> Int[Array, ""]:
    """The token where the cumulated probability of those at or above the cut passes `uniform`.

    In two levels, rows of ROW tokens and then the tokens of one row: shorter sums stay exact in float32, and one random
    number costs a fortieth of a Gumbel draw over 256,000 tokens.
    """
    weights = jnp.where(logits >= cut, jnp.exp(logits - jnp.max(logits)), 0.0)
    rows = jnp.pad(weights, (0, -logits.size % ROW)).reshape(-1, ROW)
    ends = jnp.cumsum(jnp.sum(rows, axis=1))
    target = uniform * ends[-1]
    row = jnp.argmax(ends > target)
    within = jnp.cumsum(rows[row])
    start = jnp.where(row > 0, ends[row - 1], 0.0)
    share = (target - start) / (ends[row] - start)  # of the row's own sum, so that rounding cannot point past its end
    token: Int[Array, ""] = row * ROW + jnp.argmax(within > jnp.minimum(share, BELOW_ONE) * within[-1])
    return token
