"""The chat port: POST /v1/chat/completions, GET /v1/models."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from msgspec import UNSET
from quart import Blueprint, Response, request

from server import sse
from server.completion import Completion, Delta
from server.errors import ApiError, unknown_model
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
from server.validation import parse_chat_request

BODY_SECONDS = 60
DONE = sse.frame(b"[DONE]")


def chat_routes(state: ServerState) -> Blueprint:
    """The routes of the chat port."""
    routes = Blueprint("chat", __name__)

    @routes.post("/v1/chat/completions")
    async def chat_completions() -> Response:
        chat = parse_chat_request(await _body(), request.headers.get("Content-Type", ""))
        completion = await Completion.start(state, chat)
        _end_with_request(completion)
        if chat.stream:
            return sse.response(_stream(completion, chat))
        return json_reply(await _answer(completion, chat))

    @routes.get("/v1/models")
    async def models() -> Response:
        return json_reply(ModelList([_model(state)]))

    @routes.get("/v1/models/<path:name>")
    async def model(name: str) -> Response:
        if not state.serves(name):
            raise unknown_model(name, state.model_name)
        return json_reply(_model(state))

    return routes


async def _body() -> bytes:
    """The request's body. Not by get_data(): its wait_for can swallow the cancellation of a client that left."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body: bytes = await request.body
            return body
    except TimeoutError:
        raise ApiError(408, f"The body of the request did not arrive within {BODY_SECONDS} seconds.") from None


def _end_with_request(completion: Completion) -> None:
    """Whatever ends the request ends the generation: Quart cancels the task of a client that is gone."""
    task = asyncio.current_task()
    assert task is not None
    task.add_done_callback(lambda _: completion.end("cancelled"))


async def _answer(completion: Completion, chat: ChatRequest) -> ChatCompletion:
    deltas = []
    while delta := await completion.next_delta():
        deltas.append(delta)
    message = AnswerMessage("".join(delta.text for delta in deltas))
    choice = Choice(message, _reason(completion), _logprobs(chat, *deltas))
    return ChatCompletion(completion.id, completion.created, completion.model, [choice], completion.usage)


async def _stream(completion: Completion, chat: ChatRequest) -> AsyncIterator[bytes]:
    """Frames of a streamed answer: the role, its pieces, the reason it ended, the usage where asked for, [DONE]."""
    with_usage = bool(chat.stream_options and chat.stream_options.include_usage)

    def chunk(*choices: ChunkChoice) -> bytes:
        usage = UNSET if not with_usage else None if choices else completion.usage
        body = ChatCompletionChunk(completion.id, completion.created, completion.model, list(choices), usage)
        return sse.frame(msgspec.json.encode(body))

    async def next_chunk() -> bytes | None:
        delta = await completion.next_delta()
        if delta is None:
            return None
        return chunk(ChunkChoice(ChunkDelta(content=delta.text), logprobs=_logprobs(chat, delta)))

    yield chunk(ChunkChoice(ChunkDelta(role="assistant", content="")))
    try:
        async for frame in sse.until_end(next_chunk):
            yield frame
    except ApiError as error:
        yield sse.frame(msgspec.json.encode(error.body))
        return
    yield chunk(ChunkChoice(ChunkDelta(), _reason(completion)))
    if with_usage:
        yield chunk()
    yield DONE


def _reason(completion: Completion) -> str:
    assert completion.finish_reason in ("stop", "length")  # the others raise
    return completion.finish_reason


def _logprobs(chat: ChatRequest, *deltas: Delta) -> Logprobs | None:
    return Logprobs([delta.logprob for delta in deltas if delta.logprob]) if chat.logprobs else None


def _model(state: ServerState) -> Model:
    return Model(state.model_name, state.started, state.engine.context_length)
