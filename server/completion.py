"""The life of one request for an answer, with its choices one after the other.

1. `start` submits the first choice of a Plan (server/plans.py) to the engine. Everything that can be wrong with a
   request is known by then, before the first byte of an answer.
2. The engine thread delivers each token; `call_soon_threadsafe` brings it to the event loop, where the rest happens.
3. The token becomes text, whole characters only; its FeatureActivation, labels and all, is published to the features
   port (server/choice.py),
4. and only then what the stop strings let through is put on this completion's queue, for the chat port. Neither step
   waits for a reader.
5. A choice ends with the engine's Finished or a stop string: its GenerationComplete is published, its generation
   cancelled, the next choice submitted. What the engine still delivers for it is ignored.
6. The first of these ends the whole, once: the last choice's end, an error, the client gone, the server stopping.
"""

import asyncio
import contextlib
import functools
import logging
import time
import uuid

from neuroscope_jax.engine.requests import (
    Finished,
    FinishReason,
    GeneratedToken,
    Generation,
    GenerationRequest,
    Item,
    PromptScored,
    QueueFull,
)
from server import clients, errors
from server.choice import Choice, Delta, choice_id
from server.errors import ApiError
from server.plans import Plan
from server.schemas import Usage
from server.state import ServerState

logger = logging.getLogger(__name__)


class Completion:
    """One answer being made. Belongs to the event loop."""

    def __init__(self, state: ServerState, plan: Plan) -> None:
        self.id = f"{plan.id_prefix}{uuid.uuid4().hex}"
        self.created = int(time.time())
        self.model = state.model_name
        self.heartbeat_seconds = state.config.heartbeat_seconds
        self.plan = plan
        self._state = state
        self._client = clients.name()
        self._tokens = 0  # of the choices that have ended
        self._choice: Choice | None = None
        self._next = 0
        self._scored: PromptScored | None = None  # the prompt of the choice under way
        self._ended = False
        self._queue: asyncio.Queue[Delta | ApiError | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._generation: Generation | None = None

    @classmethod
    def start(cls, state: ServerState, plan: Plan) -> "Completion":
        """Submit the first choice. Raises ApiError."""
        if state.stopping:  # since the plan was made
            raise errors.stopping()
        completion = cls(state, plan)
        try:
            completion._begin_choice()
        except QueueFull as error:
            raise errors.queue_full(error) from error
        if not completion._ended:
            state.running.add(completion)
        return completion

    def end_with_request(self) -> None:
        """Whatever ends the request ends the generation: Quart cancels the task of a client that is gone."""
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: self.end("cancelled"))

    @property
    def choice_ids(self) -> list[str]:
        """The completion_id of each choice's events."""
        return [choice_id(self.id, index) for index in range(self.plan.choices)]

    @property
    def usage(self) -> Usage:
        """Tokens so far; a stop id counts for nothing, the tokens of a stop string count, each prompt counts once."""
        prompt = sum(map(len, self.plan.prompts))
        made = self._tokens + (self._choice.tokens if self._choice else 0)
        return Usage(prompt, made, prompt + made)

    async def next_delta(self) -> Delta | None:
        """The answer's next piece, None at its end. Raises ApiError where it could not be finished. Safe to cancel."""
        item = await self._queue.get()
        if isinstance(item, ApiError):
            raise item
        return item

    def end(self, reason: FinishReason, error: ApiError | None = None) -> None:
        """Step 6. Later calls change nothing."""
        if self._ended:
            return
        self._ended = True
        self._close_choice(reason)
        self._state.running.discard(self)
        self._queue.put_nowait(error)
        usage = self.usage
        logger.info(
            "%s: %d prompt tokens, %d generated, ended by %s",
            self.id, usage.prompt_tokens, usage.completion_tokens, reason,
        )  # fmt: skip

    def _begin_choice(self) -> None:
        """Submit the next choice to the engine. Raises QueueFull."""
        plan, index = self.plan, self._next
        choice = Choice(self._state, index, self.id, plan.stops, plan.with_logprobs)
        prompt = plan.prompts[index // plan.n]
        room = self._state.engine.context_length - len(prompt)
        most = room if plan.max_tokens is None else min(plan.max_tokens, room)
        self._choice, self._next = choice, index + 1
        score = plan.score_prompts and index % plan.n == 0
        if plan.score_prompts and not score:
            self._queue.put_nowait(Delta(index, prompt=self._scored))
        if most or score:
            request = GenerationRequest(prompt, most, plan.sampling_of(index), index > 0, self._client, score)
            self._generation = self._state.engine.submit(request, functools.partial(self._deliver, choice))
        else:
            self._end_choice("length")

    def _deliver(self, choice: Choice, item: Item) -> None:
        """On the engine thread, or where a waiting request was given up."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server is gone, and with it every reader
            self._loop.call_soon_threadsafe(self._receive, choice, item)

    def _receive(self, choice: Choice, item: Item) -> None:
        """On the event loop."""
        if choice is not self._choice:
            return
        try:
            if isinstance(item, GeneratedToken):
                self._receive_token(choice, item)
            elif isinstance(item, PromptScored):
                self._scored = item
                self._queue.put_nowait(Delta(choice.index, prompt=item))
            else:
                self._receive_end(choice, item)
        except Exception:
            logger.exception("%s failed", self.id)
            self.end("error", errors.internal())

    def _receive_token(self, choice: Choice, token: GeneratedToken) -> None:
        self._put(choice.push(token))
        if choice.stopped:
            self._end_choice("stop")

    def _receive_end(self, choice: Choice, finished: Finished) -> None:
        self._put(choice.flush())
        if choice.stopped:
            self._end_choice("stop")
        elif finished.reason == "error":
            self.end("error", errors.internal())
        elif finished.reason == "cancelled":
            self.end("cancelled", errors.stopping())
        else:
            self._end_choice(finished.reason)

    def _put(self, delta: Delta) -> None:
        if delta.text or delta.logprob:
            self._queue.put_nowait(delta)

    def _end_choice(self, reason: FinishReason) -> None:
        """Step 5."""
        assert self._choice is not None
        self._queue.put_nowait(Delta(self._choice.index, finish_reason=reason))
        if self._next == self.plan.choices:
            self.end(reason)
            return
        self._close_choice(reason)
        try:
            self._begin_choice()
        except QueueFull:  # not for want of room: the engine is closed
            self.end("cancelled", errors.stopping())

    def _close_choice(self, reason: FinishReason) -> None:
        if self._generation is not None:
            self._generation.cancel()
        if self._choice is not None:
            self._tokens += self._choice.tokens
            self._choice.end(self.model, reason)
        self._generation = self._choice = None
