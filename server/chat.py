"""POST /v1/chat/completions and GET /v1/models."""

import collections
from collections.abc import AsyncIterator

from msgspec import UNSET
from quart import Blueprint, Response

from server import sse, streaming
from server.body import read_request
from server.choice import Delta
from server.completion import Completion
from server.errors import unknown_model
from server.plans import chat_plan
from server.replies import json_reply
from server.schemas import (
    AnswerMessage,
    ChatCompletion,
    ChatCompletionChunk,
    ChatRequest,
    Choice,
    ChunkChoice,
    ChunkDelta,
    Logprobs,
    Model,
    ModelList,
)
from server.state import ServerState


def chat_routes(state: ServerState) -> Blueprint:
    """The chat and the models."""
    routes = Blueprint("chat", __name__)

    @routes.post("/v1/chat/completions")
    async def chat_completions() -> Response:
        chat = await read_request(ChatRequest)
        completion = Completion.start(state, await chat_plan(state, chat))
        completion.end_with_request()
        if chat.stream:
            return sse.response(_stream(completion, chat.wants_usage))
        return json_reply(await _answer(completion))

    @routes.get("/v1/models")
    async def models() -> Response:
        return json_reply(ModelList([_model(state)]))

    @routes.get("/v1/models/<path:name>")
    async def model(name: str) -> Response:
        if not state.serves(name):
            raise unknown_model(name, state.names)
        return json_reply(_model(state))

    return routes


async def _answer(completion: Completion) -> ChatCompletion:
    deltas = collections.defaultdict[int, list[Delta]](list)
    while delta := await completion.next_delta():
        deltas[delta.choice].append(delta)
    choices = [_choice(completion, found) for _, found in sorted(deltas.items())]
    return ChatCompletion(completion.id, completion.created, completion.model, choices, completion.usage)


def _choice(completion: Completion, deltas: list[Delta]) -> Choice:
    reason = deltas[-1].finish_reason
    assert reason is not None
    text = "".join(delta.text for delta in deltas)
    return Choice(AnswerMessage(text), reason, _logprobs(completion, *deltas), deltas[-1].choice)


def _stream(completion: Completion, with_usage: bool) -> AsyncIterator[bytes]:
    """The role of every choice, its pieces, the reason it ended."""

    def wrap(*choices: ChunkChoice) -> ChatCompletionChunk:
        usage = UNSET if not with_usage else None if choices else completion.usage
        return ChatCompletionChunk(completion.id, completion.created, completion.model, list(choices), usage)

    def chunk(delta: Delta) -> ChatCompletionChunk:
        if delta.finish_reason:
            return wrap(ChunkChoice(ChunkDelta(), delta.finish_reason, index=delta.choice))
        content = ChunkDelta(content=delta.text)
        return wrap(ChunkChoice(content, logprobs=_logprobs(completion, delta), index=delta.choice))

    role = ChunkDelta(role="assistant", content="")
    roles = [wrap(ChunkChoice(role, index=index)) for index in range(completion.plan.choices)]
    return streaming.frames(completion, roles, chunk, wrap if with_usage else None)


def _logprobs(completion: Completion, *deltas: Delta) -> Logprobs | None:
    if not completion.plan.with_logprobs:
        return None
    return Logprobs([delta.logprob for delta in deltas if delta.logprob])


def _model(state: ServerState) -> Model:
    return Model(state.model_name, state.started, state.engine.context_length)
