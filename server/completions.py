"""POST /v1/completions: raw text through the model, without a chat template."""

import asyncio
import collections
from collections.abc import AsyncIterator, Sequence

from msgspec import UNSET
from quart import Blueprint, Response

from server import sse, streaming
from server.body import read_request
from server.choice import Delta
from server.completion import Completion
from server.plans import text_plan
from server.replies import json_reply
from server.state import ServerState
from server.text_logprobs import Row, columns, prompt_rows, token_row
from server.text_schemas import TextChoice, TextCompletion, TextLogprobs, TextRequest


def completions_routes(state: ServerState) -> Blueprint:
    """The one route."""
    routes = Blueprint("completions", __name__)

    @routes.post("/v1/completions")
    async def completions() -> Response:
        text = await read_request(TextRequest)
        completion = Completion.start(state, await text_plan(state, text))
        completion.end_with_request()
        if text.stream:
            return sse.response(_stream(state, completion, text.wants_usage))
        deltas = await _deltas(completion)
        # Of a long scored prompt there are thousands of rows, which would hold up everybody.
        return await asyncio.to_thread(lambda: json_reply(_answer(state, completion, deltas)))

    return routes


async def _deltas(completion: Completion) -> dict[int, list[Delta]]:
    """All of them, by choice."""
    deltas = collections.defaultdict[int, list[Delta]](list)
    while delta := await completion.next_delta():
        deltas[delta.choice].append(delta)
    return deltas


def _answer(state: ServerState, completion: Completion, deltas: dict[int, list[Delta]]) -> TextCompletion:
    choices = [_choice(state, completion, found) for _, found in sorted(deltas.items())]
    if not completion.plan.score_prompts:
        for choice in choices:
            choice.text = _echo(completion, choice.index) + choice.text
    return TextCompletion(completion.id, completion.created, completion.model, choices, completion.usage)


def _stream(state: ServerState, completion: Completion, with_usage: bool) -> AsyncIterator[bytes]:
    """The echo of every choice's prompt, where asked for, then its pieces and the reason it ended."""

    def wrap(*choices: TextChoice) -> TextCompletion:
        usage = UNSET if not with_usage else None if choices else completion.usage
        return TextCompletion(completion.id, completion.created, completion.model, list(choices), usage)

    def chunk(delta: Delta) -> TextCompletion:
        return wrap(_choice(state, completion, [delta]))

    plan = completion.plan
    echoed = range(plan.choices) if plan.echoes and not plan.score_prompts else ()
    first = [wrap(TextChoice(_echo(completion, i), i, None, None)) for i in echoed]
    return streaming.frames(completion, first, chunk, wrap if with_usage else None)


def _choice(state: ServerState, completion: Completion, deltas: Sequence[Delta]) -> TextChoice:
    """Of one choice, all of it or a piece. A scored prompt comes as a delta, and brings its text."""
    index = deltas[-1].choice
    text = "".join(_echo(completion, index) if delta.prompt else delta.text for delta in deltas)
    return TextChoice(text, index, _logprobs(state, completion, deltas), deltas[-1].finish_reason)


def _echo(completion: Completion, index: int) -> str:
    prompt = completion.plan.echo_of(index)
    return prompt.text if prompt else ""


def _logprobs(state: ServerState, completion: Completion, deltas: Sequence[Delta]) -> TextLogprobs | None:
    rows: list[Row] = []
    for delta in deltas:
        prompt = completion.plan.echo_of(delta.choice)
        if delta.prompt and prompt:
            rows.extend(prompt_rows(prompt, delta.prompt, state.tokenizer))
        if delta.logprob:
            rows.append(token_row(delta.offset + len(_echo(completion, delta.choice)), delta.logprob))
    if not completion.plan.with_logprobs or not rows:
        return None
    return columns(rows, completion.plan.sampling.top_logprobs > 0)
