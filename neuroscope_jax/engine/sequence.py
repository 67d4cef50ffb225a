"""A text on the device: which ids its cache holds, and the steps that carry it on."""

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from neuroscope_jax.engine import steps
from neuroscope_jax.engine.chunks import CACHE_BUCKETS, Chunk, bucket, chunks
from neuroscope_jax.engine.kept import Kept, KeptCaches
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.models import sharding
from neuroscope_jax.models.cache import KVCache
from neuroscope_jax.models.weights import Params

ROOM_FOR_ANSWER = 256  # tokens of an answer before its cache may have to grow


@dataclasses.dataclass(frozen=True)
class Programs:
    """What every step takes, and how long a text can be."""

    model: nn.Module
    params: Params
    taps: tuple[Tap, ...]
    context_length: int


class TokenSequence:
    """A prompt and the ids chosen behind it. One cache, here or in `kept`: steps donate it."""

    def __init__(self, programs: Programs, kept: KeptCaches, prompt_ids: Sequence[int], sampling: Sampling) -> None:
        self._programs, self._kept, self._sampling = programs, kept, sampling
        self.ids = list(prompt_ids)  # all that was chosen included
        self._cache: KVCache | None = None  # until the first token is chosen
        self._state: steps.DecodeState | None = None  # from then on
        self._held = 0  # ids that the cache holds, once everything dispatched is done
        self._forgotten = 0  # see KVCache

    def read(self, room: int, gives_up: Callable[[], bool]) -> steps.StepOutput | None:
        """Read the prompt and dispatch the choice of token 0, in a cache with room for an answer of `room` tokens.

        None if, between two chunks, `gives_up` says so.
        """
        cache = self._for_reading(self._length_for(room))
        *before, last = chunks(self._held, len(self.ids), cache.length)
        p = self._programs
        for chunk in before:
            self._writes(cache, chunk.begin + chunk.size)
            cache = steps.extend_step(p.model, p.params, cache, self._padded(chunk), jnp.int32(chunk.begin))
            self._held = chunk.end
            jax.block_until_ready(cache)
            if gives_up():
                self._cache = cache
                return None
        self._writes(cache, last.begin + last.size)
        self._held = last.end
        return self._dispatched(steps.prefill_step(*self._to_choose(cache, last)))

    def compile(self, room: int) -> None:
        """Compile what `read` runs of a prompt of one chunk, and `step`.

        The weights are shapes, with their places where they are tied to these.
        """
        p = self._programs
        tied, split = next(iter(jax.tree.leaves(p.params))).sharding is not None, sharding.mesh_of(p.params) is not None
        cache = _results(steps.empty_cache.lower(p.model, self._length_for(room)), split)
        (chunk,) = chunks(0, len(self.ids), cache.length)
        with ThreadPoolExecutor(1) as pool:
            prefill = steps.prefill_step.lower(*self._to_choose(cache, chunk))
            compiled = pool.submit(prefill.compile)
            if tied:
                compiled.result()  # else it would be compiled a second time for the places of its results
            state, _ = _results(prefill, tied)
            steps.decode_step.lower(p.model, p.params, p.taps, state, self._sampling).compile()
            compiled.result()

    def score(self, room: int, gives_up: Callable[[], bool]) -> steps.Scores | None:
        """What the model says of every id of the prompt but the first, on the host; `read` goes on from there.

        All of it is computed, also what a kept cache holds. None if, between two chunks, `gives_up` says so.
        """
        p, scores = self._programs, []
        self._cache = self._empty(self._length_for(room))
        for chunk in chunks(0, len(self.ids), self._cache.length):
            self._writes(self._cache, chunk.begin + chunk.size)
            ids, start, behind = self._padded(chunk), jnp.int32(chunk.begin), self._padded(chunk, 1)
            self._cache, found = steps.score_step(p.model, p.params, self._cache, ids, start, behind)
            new = slice(self._held - chunk.begin, min(chunk.end, len(self.ids) - 1) - chunk.begin)
            scores.append(jax.tree.map(lambda leaf, new=new: leaf[new], jax.device_get(found)))
            self._held = chunk.end
            if gives_up():
                return None
        whole: steps.Scores = jax.tree.map(lambda *parts: np.concatenate(parts), *scores)
        return whole

    def step(self) -> steps.StepOutput:
        """Dispatch the step that feeds in the id chosen last, wherever that choice has come to."""
        p, state = self._programs, self._with_slots(1)
        self._held += 1
        return self._dispatched(steps.decode_step(p.model, p.params, p.taps, state, self._sampling))

    def verify(self, proposed: Sequence[int]) -> list[steps.StepOutput]:
        """Feed in the id chosen last, and `proposed` as far as they come true: the choices behind each, on the host."""
        p, state = self._programs, self._with_slots(1 + len(proposed))
        ids = jnp.array(proposed, jnp.int32)
        self._state, outputs, number = steps.verify_step(p.model, p.params, p.taps, state, ids, self._sampling)
        outputs, number = jax.device_get((outputs, number))
        self._held += int(number)
        return [jax.tree.map(lambda leaf, place=place: leaf[place], outputs) for place in range(number)]

    def has_room(self, tokens: int) -> bool:
        """Whether so many more can be fed in."""
        return self._held + tokens <= self._programs.context_length

    def chose(self, token_id: int) -> None:
        """Note what a step chose."""
        self.ids.append(token_id)

    def keep(self) -> None:
        """Give the cache to `kept`; nothing can follow."""
        cache = self._cache if self._state is None else self._state.cache
        if cache is not None:
            self._kept.keep(Kept(tuple(self.ids[: self._held]), cache, self._forgotten))
        self._cache = self._state = None

    def _writes(self, cache: KVCache, end: int) -> None:
        """Note that the positions below `end` are about to be written."""
        self._forgotten = max(self._forgotten, cache.forgotten(end))

    def _with_slots(self, tokens: int) -> steps.DecodeState:
        """The state, with a cache that takes so many more, which are about to be written."""
        assert self._state is not None, "read comes first"
        if self._held + tokens > self._state.cache.length:
            grown = self._grown(self._state.cache, self._length(self._held + tokens))
            self._state = self._state.replace(cache=grown)
        self._writes(self._state.cache, self._held + tokens)
        return self._state

    def _length(self, tokens: int) -> int:
        """Of a cache for so many."""
        return min(bucket(tokens, CACHE_BUCKETS), self._programs.context_length)

    def _length_for(self, room: int) -> int:
        """Of a cache for the prompt and the beginning of an answer of `room` tokens."""
        return self._length(len(self.ids) + min(room, ROOM_FOR_ANSWER))

    def _empty(self, length: int) -> KVCache:
        model = self._programs.model
        self._kept.make_room(steps.empty_cache.eval_shape(model, length).nbytes)
        cache: KVCache = steps.empty_cache(model, length)
        return cache

    def _for_reading(self, length: int) -> KVCache:
        """A cache for at least so many positions. What it holds of the prompt is all but the last id at most."""
        if self._cache is not None:  # scored
            cache, self._cache, self._held = self._cache, None, len(self.ids) - 1
            return cache
        taken = self._kept.take(self.ids, length)
        if taken is None:
            return self._empty(length)
        self._held, self._forgotten = len(taken.ids), taken.forgotten
        return taken.cache if taken.cache.length >= length else self._grown(taken.cache, length)

    def _grown(self, cache: KVCache, length: int) -> KVCache:
        self._kept.make_room(cache.nbytes_of(length))
        grown: KVCache = steps.grow_cache(cache, length)
        return grown

    def _to_choose(self, cache: KVCache, last: Chunk) -> tuple[Any, ...]:
        """The arguments of prefill_step."""
        p, length = self._programs, jnp.int32(last.end - last.begin)
        return p.model, p.params, p.taps, cache, self._padded(last), jnp.int32(last.begin), length, self._sampling

    def _padded(self, chunk: Chunk, further: int = 0) -> Int[Array, "1 T"]:
        """The ids of a chunk, or those so many places further on."""
        ids = self.ids[chunk.begin + further : chunk.end + further]
        return jnp.array([[*ids, *[0] * (chunk.size - len(ids))]], jnp.int32)

    def _dispatched(self, step: tuple[steps.DecodeState, steps.StepOutput]) -> steps.StepOutput:
        """Start the copy to the host as soon as the figures exist; nothing here waits."""
        self._state, output = step
        for leaf in jax.tree.leaves(output):
            leaf.copy_to_host_async()
        return output


def _results(lowered: jax.stages.Lowered, tied: bool) -> Any:
    """Shapes of what a program gives; with their places where it is tied to these, as its arguments are."""
    if not tied:
        return lowered.out_info
    places = lowered.compile().output_shardings
    return jax.tree.map(lambda leaf, place: leaf.update(sharding=place), lowered.out_info, places)
