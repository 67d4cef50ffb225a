"""JaxEngine: one thread owns the device and serves a bounded queue, in which clients take turns.

The life of a request:
1. `submit` checks that the prompt leaves room and puts the request in the queue (full: QueueFull, at once).
2. The engine thread takes it. A request cancelled while it waits leaves the queue, and ends, at once.
3. The prompt goes in, but for what a kept cache holds of it: chunk by chunk through `extend_step`, the last through
   `prefill_step`, which chooses token 0. Where its own log-probabilities are asked for, all of it goes through
   `score_step` first, and then only its last token through `prefill_step`.
4. `decode_step` for token n+1 is dispatched from the token still on the device, before token n is read. With lookahead
   instead: where the text has stood like this before, `verify_step` tries what came then, for several tokens at once.
5. Token n is read, made into a GeneratedToken and delivered. A stop id is not delivered; it ends the generation.
6. Steps 4 and 5 repeat until a stop id, the limit, a cancellation or an error. What was chosen beyond is dropped.
7. The cache is kept for a request that begins alike. Finished is delivered: exactly once and last, whatever happened.
"""

import logging
import math
import threading
import traceback
from collections.abc import Collection, Generator

import flax.linen as nn
import numpy as np

from neuroscope_jax.engine import steps
from neuroscope_jax.engine.answering import looked_up, one_ahead
from neuroscope_jax.engine.kept import KeptCaches, budget
from neuroscope_jax.engine.lookup import MOST_PROPOSED
from neuroscope_jax.engine.ready import WARM_UP
from neuroscope_jax.engine.requests import (
    Deliver,
    Finished,
    FinishReason,
    GeneratedToken,
    GenerationRequest,
    PromptScored,
    SamplingOptions,
    TokenFeatures,
)
from neuroscope_jax.engine.sampling import MAX_STOP_IDS, Sampling
from neuroscope_jax.engine.sequence import Programs, TokenSequence
from neuroscope_jax.engine.waiting import Job, WaitingLine
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.readout import Readout, Tap
from neuroscope_jax.models import sharding
from neuroscope_jax.models.weights import Params

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0


class JaxEngine:
    """The engine of a model and its taps; satisfies engine.requests.Engine."""

    def __init__(
        self,
        model: nn.Module,
        params: Params,
        taps: tuple[Tap, ...],
        stop_ids: Collection[int],
        context_length: int,
        queue_size: int,
        lookahead: bool = False,
    ) -> None:
        if len(stop_ids) > MAX_STOP_IDS:
            raise UserError(f"generation_config.json: {len(stop_ids)} tokens end an answer; at most {MAX_STOP_IDS} can")
        self.context_length = context_length
        self._programs = Programs(model, params, taps, context_length)
        self._lookahead = lookahead
        self._mesh = sharding.mesh_of(params)
        self._stop_ids = sorted(stop_ids)
        self._line = WaitingLine(queue_size)
        self._kept = KeptCaches()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="neuroscope-engine", daemon=True)

    def start(self) -> None:
        """Run the steps of short prompts once, still on the caller's thread, then begin to serve.

        They are compiled here unless they are already.
        """
        with sharding.in_use(self._mesh):
            for _ in self._items(Job(WARM_UP, lambda _: None, lambda _: None)):
                pass
            if self._lookahead:
                self._warm_up_lookahead()
            self._kept.clear()
            self._kept.budget = budget()  # weights and SAE have taken their part by now
        self._thread.start()

    def _warm_up_lookahead(self) -> None:
        sequence = self._sequence(WARM_UP)
        sequence.read(1, lambda: False)
        sequence.step()  # which the warm-up may have done without
        if sequence.has_room(1 + MOST_PROPOSED):
            sequence.verify([0] * MOST_PROPOSED)

    @property
    def alive(self) -> bool:
        """False once the engine thread has died, or before it was started."""
        return self._thread.is_alive()

    def submit(self, request: GenerationRequest, deliver: Deliver) -> Job:
        """Queue a request; see engine.requests.Engine."""
        if not 0 < len(request.prompt_ids) < self.context_length:
            raise ValueError(f"the prompt has {len(request.prompt_ids)} tokens, the context {self.context_length}")
        least = 0 if request.score_prompt else 1
        if request.max_tokens < least:
            raise ValueError(f"max_tokens is {request.max_tokens}; at least {least}")
        job = Job(request, deliver, self._leave_line)
        self._line.put(job)
        return job

    def close(self) -> None:
        """Cancel the running and the queued requests and end the thread, if the step it is in ends within a moment.

        A step or a compilation cannot be interrupted; `alive` says whether it is still at it.
        """
        self._closing.set()
        for job in self._line.close():
            self._end(job, Finished("cancelled", 0))
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _leave_line(self, job: Job) -> None:
        if self._line.remove(job):
            self._end(job, Finished("cancelled", 0))

    def _serve(self) -> None:
        running = None
        try:
            with sharding.in_use(self._mesh):
                while (running := self._line.take()) is not None:
                    self._run(running)
        finally:  # whatever ended the thread, nobody is left waiting for it
            unfinished = [job for job in (running, *self._line.close()) if job is not None]
            for job in unfinished:
                self._end(job, Finished("error", 0, RuntimeError("the engine thread has died")))

    def _run(self, job: Job) -> None:
        """Deliver what comes of a job and how it ended. A failing step ends this job, never the thread."""
        delivered, items = 0, self._items(job)
        try:
            while True:
                item = next(items)
                job.deliver(item)
                delivered += isinstance(item, GeneratedToken)
        except StopIteration as end:
            finished = Finished(end.value, delivered)
        except Exception as error:
            logger.exception("generation failed after %d tokens", delivered)
            items.close()
            traceback.clear_frames(error.__traceback__)  # they hold the cache, and memory may be what it failed for
            self._kept.clear()
            finished = Finished("error", delivered, error)
        self._end(job, finished)

    def _end(self, job: Job, finished: Finished) -> None:
        try:
            job.deliver(finished)
        except Exception:
            logger.exception("the receiver of a generation failed at its end")

    def _items(self, job: Job) -> Generator[PromptScored | GeneratedToken, None, FinishReason]:
        """What is delivered of a job before it ends. Returns the reason it ended."""
        if self._gives_up(job):
            return "cancelled"
        sequence = self._sequence(job.request)
        reason = yield from self._read_and_answered(job, sequence)
        sequence.keep()  # not after an error: what it holds may be the cause
        return reason

    def _read_and_answered(
        self, job: Job, sequence: TokenSequence
    ) -> Generator[PromptScored | GeneratedToken, None, FinishReason]:
        request = job.request
        limit = min(request.max_tokens, self.context_length - len(request.prompt_ids))
        if request.score_prompt:
            scores = sequence.score(limit, lambda: self._gives_up(job))
            if scores is None:
                return "cancelled"
            yield _scored(scores, request.sampling)
        if not limit:
            return "length"
        return (yield from self._answer(job, sequence, limit))

    def _sequence(self, request: GenerationRequest) -> TokenSequence:
        sampling = Sampling.of(request.sampling, self._stop_ids)
        return TokenSequence(self._programs, self._kept, request.prompt_ids, sampling)

    def _answer(self, job: Job, sequence: TokenSequence, limit: int) -> Generator[GeneratedToken, None, FinishReason]:
        request = job.request
        first = sequence.read(limit, lambda: self._gives_up(job))
        if first is None:
            return "cancelled"
        input_id = request.prompt_ids[-1]
        outputs = looked_up(sequence, first) if self._lookahead else one_ahead(sequence, first, limit)
        for index, output in zip(range(limit), outputs, strict=False):
            sequence.chose(int(output.choice.id))
            if self._gives_up(job):
                return "cancelled"
            if output.choice.stops:
                return "stop"
            token = _generated(
                index, len(request.prompt_ids) - 1 + index, input_id, output, self._programs.taps, request.sampling
            )
            input_id = token.id
            yield token
        return "length"

    def _gives_up(self, job: Job) -> bool:
        return job.cancelled or self._closing.is_set()


def _scored(scores: steps.Scores, options: SamplingOptions) -> PromptScored:
    if not np.isfinite(scores.logprobs).all():
        raise FloatingPointError("the model's logits in the prompt are not finite")
    ids, logprobs = (leaf[:, : options.top_logprobs].tolist() for leaf in (scores.top_ids, scores.top_logprobs))
    top = (zip(*row, strict=True) for row in zip(ids, logprobs, strict=True))
    return PromptScored(tuple(scores.logprobs.tolist()), tuple(map(tuple, top)))


def _generated(
    index: int,
    position: int,
    input_id: int,
    output: steps.StepOutput,
    taps: tuple[Tap, ...],
    options: SamplingOptions,
) -> GeneratedToken:
    choice = output.choice
    if not math.isfinite(choice.logprob):
        raise FloatingPointError(f"the model's logits at position {position} are not finite")
    top = zip(choice.top_ids[: options.top_logprobs], choice.top_logprobs[: options.top_logprobs], strict=True)
    return GeneratedToken(
        index=index,
        id=int(choice.id),
        logprob=float(choice.logprob),
        top_logprobs=tuple((int(i), float(p)) for i, p in top),
        position=position,
        input_id=int(input_id),
        features=tuple(_features(tap, readout) for tap, readout in zip(taps, output.features, strict=True)),
    )


def _features(tap: Tap, readout: Readout) -> TokenFeatures:
    kept = readout.activations > 0
    firings, surprise = readout.firings[kept].tolist(), readout.surprise[kept].tolist()
    known = [z if n else None for z, n in zip(surprise, firings, strict=True)]
    return TokenFeatures(
        layer=tap.layer,
        indices=tuple(readout.indices[kept].tolist()),
        activations=tuple(readout.activations[kept].tolist()),
        surprise=tuple(known) if tap.filter.calibrated else None,
        filtered_count=int(readout.filtered_count),
        firings=tuple(firings) if tap.filter.calibrated else None,
    )
