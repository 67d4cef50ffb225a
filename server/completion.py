"""The life of one chat completion. Plain and streamed answers are both read from it.

1. `start` turns the messages into prompt ids, refuses what does not fit and submits them to the engine. Everything that
   can be wrong with a request is known here, before the first byte of an answer.
2. The engine thread delivers each token; `call_soon_threadsafe` brings it to the event loop, where the rest happens.
3. The token becomes text, whole characters only.
4. Its FeatureActivation, labels and all, is published to the features port,
5. and only then what the stop strings let through is put on this completion's queue, for the chat port. Neither step
   waits for a reader.
6. The first of these ends it, once: the engine's Finished, a stop string, the client gone, the server stopping. The
   generation is cancelled, GenerationComplete published, the end queued; what the engine still delivers is ignored.
"""

import asyncio
import contextlib
import dataclasses
import logging
import time
import uuid

from neuroscope_jax.engine.requests import (
    Finished,
    FinishReason,
    GeneratedToken,
    Generation,
    GenerationRequest,
    QueueFull,
)
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.events import GenerationComplete
from server import errors, validation
from server.errors import ApiError
from server.schemas import ChatRequest, TokenLogprob, Usage
from server.state import ServerState
from server.stop_strings import StopStrings
from server.tokens import feature_events, token_logprob

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Delta:
    """What one token added to the answer; `logprob` only where the request asked for it."""

    text: str
    logprob: TokenLogprob | None = None


class Completion:
    """One answer being made. Belongs to the event loop."""

    def __init__(self, state: ServerState, request: ChatRequest, prompt_ids: tuple[int, ...]) -> None:
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self.created = int(time.time())
        self.model = state.model_name
        self.finish_reason: FinishReason | None = None
        self._state = state
        self._request = request
        self._prompt_ids = prompt_ids
        self._tokens = 0
        self._detokenizer = state.tokenizer.detokenizer()
        self._stops = StopStrings(validation.stop_strings(request))
        self._queue: asyncio.Queue[Delta | ApiError | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._generation: Generation | None = None

    @classmethod
    async def start(cls, state: ServerState, request: ChatRequest) -> "Completion":
        """Encode, check and submit. Raises ApiError."""
        _check_available(state, request)
        messages = validation.prompt_messages(request)
        _check_length(state, messages)
        try:
            prompt_ids = await asyncio.to_thread(state.tokenizer.encode_chat, messages)
        except UserError as error:
            raise errors.invalid("messages", str(error)) from error
        completion = cls(state, request, prompt_ids)
        completion._submit()
        return completion

    @property
    def usage(self) -> Usage:
        """Tokens so far; a stop id counts for nothing, the tokens of a stop string count."""
        prompt = len(self._prompt_ids)
        return Usage(prompt, self._tokens, prompt + self._tokens)

    async def next_delta(self) -> Delta | None:
        """The answer's next piece, None at its end. Raises ApiError where it could not be finished. Safe to cancel."""
        item = await self._queue.get()
        if isinstance(item, ApiError):
            raise item
        return item

    def end(self, reason: FinishReason, error: ApiError | None = None) -> None:
        """Step 6. Later calls change nothing."""
        if self.finish_reason is not None:
            return
        self.finish_reason = reason
        if self._generation is not None:
            self._generation.cancel()
        self._state.running.discard(self)
        self._state.broadcast.publish(GenerationComplete(self._tokens, self.model, self.id, reason))
        self._queue.put_nowait(error)
        prompt = len(self._prompt_ids)
        logger.info("%s: %d prompt tokens, %d generated, ended by %s", self.id, prompt, self._tokens, reason)

    def _submit(self) -> None:
        if self._state.stopping:  # since `start` looked
            raise errors.stopping()
        limit = self._state.engine.context_length
        if len(self._prompt_ids) >= limit:
            raise _too_long(limit, len(self._prompt_ids))
        new_tokens = validation.max_new_tokens(self._request, limit - len(self._prompt_ids))
        sampling = validation.sampling_options(self._request, self._state.sampling)
        request = GenerationRequest(self._prompt_ids, new_tokens, sampling)
        try:
            self._generation = self._state.engine.submit(request, self._deliver)
        except QueueFull as error:
            wait = {"Retry-After": str(RETRY_SECONDS)}
            raise ApiError(429, f"The queue is full: {error}.", code="queue_full", headers=wait) from error
        self._state.running.add(self)

    def _deliver(self, item: GeneratedToken | Finished) -> None:
        """On the engine thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server is gone, and with it every reader
            self._loop.call_soon_threadsafe(self._receive, item)

    def _receive(self, item: GeneratedToken | Finished) -> None:
        """On the event loop."""
        if self.finish_reason is not None:
            return
        try:
            if isinstance(item, GeneratedToken):
                self._receive_token(item)
            else:
                self._receive_end(item)
        except Exception:
            logger.exception("%s failed", self.id)
            self.end("error", errors.internal())

    def _receive_token(self, token: GeneratedToken) -> None:
        text = self._detokenizer.push(token.id)
        self._tokens += 1
        for event in feature_events(token, text, self.id, self._state.tokenizer, self._state.labels):
            self._state.broadcast.publish(event)
        self._emit(text, token_logprob(token, self._state.tokenizer) if self._request.logprobs else None)
        if self._stops.found:
            self.end("stop")

    def _receive_end(self, finished: Finished) -> None:
        self._emit(self._detokenizer.flush(), None)
        self._put(Delta(self._stops.flush()))
        if self._stops.found:
            self.end("stop")
        elif finished.reason == "error":
            self.end("error", errors.internal())
        else:
            self.end(finished.reason, errors.stopping() if finished.reason == "cancelled" else None)

    def _emit(self, text: str, logprob: TokenLogprob | None) -> None:
        self._put(Delta(self._stops.push(text), logprob))

    def _put(self, delta: Delta) -> None:
        if delta.text or delta.logprob:
            self._queue.put_nowait(delta)


def _check_available(state: ServerState, request: ChatRequest) -> None:
    if state.stopping:
        raise errors.stopping()
    if not state.engine.alive:
        raise errors.engine_stopped()
    if not state.serves(request.model or ""):
        raise errors.unknown_model(request.model or "", state.model_name)


def _check_length(state: ServerState, messages: list[tuple[str, str]]) -> None:
    """Refuse what cannot fit however it is cut: to tokenize megabytes would hold everybody up for seconds."""
    limit = state.engine.context_length
    least = sum(len(text) for _, text in messages) // state.tokenizer.longest_token
    if least >= limit:
        raise _too_long(limit, f"at least {least}")


def _too_long(limit: int, found: object) -> ApiError:
    """In the words of OpenAI's own message, which agents look for before they shorten a conversation."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {found} tokens, "
        "and the answer needs at least one. Please reduce the length of the messages."
    )
    return errors.invalid("messages", message, code="context_length_exceeded")
