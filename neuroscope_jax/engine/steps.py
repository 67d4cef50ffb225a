"""The compiled steps of serving, and the only jits of it besides each block's own, which XLA inlines.

    extend_step:   cache, the next chunk of a prompt ─▶ cache
    prefill_step:  cache, its last chunk (padded to a bucket) ─▶ state, StepOutput of token 0
    decode_step:   state ─▶ state, StepOutput of the next token
    verify_step:   state, ids that may come next ─▶ state, StepOutputs of those that do and of one more
    score_step:    cache, a chunk of a prompt ─▶ cache, the log-probability of what follows each token

Inside one jit: embed ▶ blocks ▶ logits ▶ next id, and at each tapped layer residual ▶ SAE ▶ filter ▶ top-K. The
residual read is that of the position from which the token was chosen. With no taps the program holds nothing of an SAE.
"""

import functools
from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from neuroscope_jax.engine.requests import MAX_TOP_LOGPROBS
from neuroscope_jax.engine.sampling import Choice, Sampling, choose, choose_in_turn
from neuroscope_jax.features.readout import Readout, Tap, read_out
from neuroscope_jax.models.cache import KVCache
from neuroscope_jax.models.weights import Params
from neuroscope_jax.pytree import PyTree

SCORED_ROWS = 16


class DecodeState(PyTree):
    """All that one generation carries from step to step; donated, so that the cache is updated in place."""

    cache: KVCache
    token: Int[Array, ""]  # chosen, not yet fed in
    position: Int[Array, ""]  # the one `token` will be fed in at
    counts: Int[Array, " V"]  # how often each token was generated, for the penalties


class Scores(PyTree):
    """Of each of T tokens: the log-probability of the one behind it, and the likeliest in that one's place."""

    logprobs: Float[Array, " T"]
    top_ids: Int[Array, "T top"]
    top_logprobs: Float[Array, "T top"]


class StepOutput(PyTree):
    """What the host reads of a step; of a verify_step every leaf has its places in front."""

    choice: Choice
    features: tuple[Readout, ...]  # one a tap


@functools.partial(jax.jit, static_argnames=("model",), donate_argnames=("cache",))
def extend_step(
    model: nn.Module, params: Params, cache: KVCache, ids: Int[Array, "1 T"], start: Int[Array, ""]
) -> KVCache:
    """Read T more tokens of a prompt into the slots from `start` on; others follow before one is chosen."""
    _, cache, _ = _forward(model, params, (), ids, start + jnp.arange(ids.shape[1])[None], cache)
    return cache


@functools.partial(jax.jit, static_argnames=("model",), donate_argnames=("cache",))
def prefill_step(
    model: nn.Module,
    params: Params,
    taps: tuple[Tap, ...],
    cache: KVCache,
    ids: Int[Array, "1 T"],
    start: Int[Array, ""],
    length: Int[Array, ""],
    sampling: Sampling,
) -> tuple[DecodeState, StepOutput]:
    """Read the last `length` tokens of a prompt, right-padded to T, into the slots from `start` on; choose token 0.

    Padding needs no mask of its own: it lies after every real token, and decoding overwrites its slots before it reads
    them.
    """
    positions = start + jnp.arange(ids.shape[1])[None]
    hidden, cache, residuals = _forward(model, params, taps, ids, positions, cache)
    last = length - 1
    counts = jnp.zeros(model.config.vocab_size, jnp.int32)
    at_last = [r[0, last] for r in residuals]
    return _finish(model, params, taps, cache, hidden[:, last][:, None], at_last, counts, start + last, sampling)


@functools.partial(jax.jit, static_argnames=("model",), donate_argnames=("state",))
def decode_step(
    model: nn.Module, params: Params, taps: tuple[Tap, ...], state: DecodeState, sampling: Sampling
) -> tuple[DecodeState, StepOutput]:
    """Feed the last chosen token in and choose the next one."""
    ids, positions = state.token[None, None], state.position[None, None]
    hidden, cache, residuals = _forward(model, params, taps, ids, positions, state.cache)
    return _finish(
        model, params, taps, cache, hidden, [r[0, 0] for r in residuals], state.counts, state.position, sampling
    )


@functools.partial(jax.jit, static_argnames=("model",), donate_argnames=("state",))
def verify_step(
    model: nn.Module,
    params: Params,
    taps: tuple[Tap, ...],
    state: DecodeState,
    proposed: Int[Array, " P"],
    sampling: Sampling,
) -> tuple[DecodeState, StepOutput, Int[Array, ""]]:
    """Feed the last chosen token in and P that may follow; choose behind each as decode_step would have.

        fed in      t   a   b   c          proposed: a b c
        chosen      a   b   x   y          a and b came true, x is chosen in place of c, y has no meaning

    Returns the outputs of all 1 + P places and how many of them count, here 3. What was fed in beyond lies in slots
    that are written again before they are read.
    """
    ids = jnp.concatenate([state.token[None], proposed])
    places = state.position + jnp.arange(ids.size)
    hidden, cache, residuals = _forward(model, params, taps, ids[None], places[None], state.cache)
    logits = cast(Array, model.apply({"params": params}, hidden, method="logits"))[0]
    choices, counts, number = choose_in_turn(logits, proposed, state.counts, sampling, places)
    features = tuple(read_out(tap, residual[0]) for tap, residual in zip(taps, residuals, strict=True))
    state = DecodeState(cache, choices.id[number - 1], state.position + number, counts)
    return state, StepOutput(choices, features), number


@functools.partial(jax.jit, static_argnames=("model",), donate_argnames=("cache",))
def score_step(
    model: nn.Module,
    params: Params,
    cache: KVCache,
    ids: Int[Array, "1 T"],
    start: Int[Array, ""],
    behind: Int[Array, "1 T"],
) -> tuple[KVCache, Scores]:
    """extend_step, and how likely each token makes the one of `behind` that follows it.

    A few rows at a time: the logits of all of them would be T * V floats.
    """
    hidden, cache, _ = _forward(model, params, (), ids, start + jnp.arange(ids.shape[1])[None], cache)
    padding = -ids.shape[1] % SCORED_ROWS
    rows = jnp.pad(hidden[0], ((0, padding), (0, 0))).reshape(-1, SCORED_ROWS, hidden.shape[-1])
    targets = jnp.pad(behind[0], (0, padding)).reshape(-1, SCORED_ROWS)

    def score(few: tuple[Array, Array]) -> Scores:
        x, wanted = few
        logprobs = jax.nn.log_softmax(cast(Array, model.apply({"params": params}, x[None], method="logits"))[0])
        top_logprobs, top_ids = jax.lax.top_k(logprobs, min(MAX_TOP_LOGPROBS, logprobs.shape[-1]))
        return Scores(jnp.take_along_axis(logprobs, wanted[:, None], axis=1)[:, 0], top_ids, top_logprobs)

    found = jax.lax.map(score, (rows, targets))
    scores: Scores = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: ids.shape[1]], found)
    return cache, scores


@functools.partial(jax.jit, static_argnames=("model", "length"))
def empty_cache(model: nn.Module, length: int) -> KVCache:
    """A cache for `length` positions of one sequence."""
    cache: KVCache = model.empty_cache(1, length)
    return cache


@functools.partial(jax.jit, static_argnames=("length",))
def grow_cache(cache: KVCache, length: int) -> KVCache:
    """The same entries in a cache for `length` positions."""
    return cache.grown(length)


def _forward(
    model: nn.Module,
    params: Params,
    taps: tuple[Tap, ...],
    ids: Int[Array, "1 T"],
    positions: Int[Array, "1 T"],
    cache: KVCache,
) -> tuple[Float[Array, "1 T D"], KVCache, list[Float[Array, "1 T D"]]]:
    """Run the blocks; also the residual stream at each tap. XLA drops what is sown and not used."""
    (hidden, cache), sown = model.apply({"params": params}, ids, positions, cache, mutable=["intermediates"])
    residuals = [sown["intermediates"][f"layers_{tap.layer}"]["resid_post"][0] for tap in taps]
    return hidden, cache, residuals


def _finish(
    model: nn.Module,
    params: Params,
    taps: tuple[Tap, ...],
    cache: KVCache,
    hidden: Float[Array, "1 1 D"],
    residuals: list[Float[Array, " D"]],
    counts: Int[Array, " V"],
    position: Int[Array, ""],
    sampling: Sampling,
) -> tuple[DecodeState, StepOutput]:
    """Logits, next token and features of the one position that matters."""
    logits = cast(Array, model.apply({"params": params}, hidden, method="logits"))[0, 0]
    choice = choose(logits, counts, sampling, position)
    features = tuple(read_out(tap, residual) for tap, residual in zip(taps, residuals, strict=True))
    state = DecodeState(cache, choice.id, position + 1, counts.at[choice.id].add(1))
    return state, StepOutput(choice, features)
