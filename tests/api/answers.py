"""What came back for a case, read in both of its forms, and what holds of every answer whatever the case."""

import dataclasses
import json
from typing import Any

import httpx
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.api.case import CHAT

PLAIN = {True: ChatCompletion, False: Completion}
CHUNK = {True: ChatCompletionChunk, False: Completion}


@dataclasses.dataclass
class Answer:
    """The same of a plain and a streamed answer."""

    texts: list[str]
    reasons: list[str]
    usage: dict[str, int] | None
    deltas: list[str]  # of the first choice
    logprobs: list[Any]  # of each choice, the entries of all of its chunks


def plain_answer(response: httpx.Response, path: str) -> Answer:
    """Read a plain answer; the official client's types must take it as it is."""
    chat, body = path == CHAT, response.json()
    assert response.headers["content-type"] == "application/json"
    PLAIN[chat].model_validate(body if chat else _typed(body), strict=True)
    assert [choice["index"] for choice in body["choices"]] == list(range(len(body["choices"])))
    assert all("logprobs" in choice for choice in body["choices"]), "required, null where not asked for"
    texts = [choice["message"]["content"] if chat else choice["text"] for choice in body["choices"]]
    reasons = [choice["finish_reason"] for choice in body["choices"]]
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]
    logprobs = [choice["logprobs"] for choice in body["choices"]]
    found = [None if each == {"content": [], "refusal": None} else each for each in logprobs]  # a stream has no chunk
    return Answer(texts, reasons, body["usage"], [], found)


def _typed(body: dict[str, Any]) -> dict[str, Any]:
    """The first token of an echo has null as its logprob, with OpenAI too; the client's type does not say so."""
    copy: dict[str, Any] = json.loads(json.dumps(body))
    for choice in copy["choices"]:
        for name, column in (choice["logprobs"] or {}).items():
            choice["logprobs"][name] = column and [entry for entry in column if entry is not None]
    return copy


def streamed_answer(response: httpx.Response, path: str, with_usage: bool) -> Answer:
    """Read a stream and check its protocol, from the role to [DONE]."""
    assert response.headers["content-type"] == "text/event-stream"
    frames = response.content.decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2] if not frame.startswith(":")]
    for chunk in chunks if path == CHAT else []:  # of text the client's type knows no null as finish_reason
        ChatCompletionChunk.model_validate(chunk, strict=True)
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    usage = None
    if with_usage:
        last = chunks.pop()
        assert last["choices"] == []
        assert all(chunk["usage"] is None for chunk in chunks)
        usage = last["usage"]
    else:
        assert not any("usage" in chunk for chunk in chunks)
    assert all(len(chunk["choices"]) == 1 for chunk in chunks)
    return _joined([chunk["choices"][0] for chunk in chunks], path == CHAT, usage)


def _joined(choices: list[dict[str, Any]], chat: bool, usage: dict[str, int] | None) -> Answer:
    by_index: dict[int, list[dict[str, Any]]] = {}
    for choice in choices:
        by_index.setdefault(choice["index"], []).append(choice)
    assert sorted(by_index) == list(range(len(by_index)))
    found = [by_index[index] for index in sorted(by_index)]
    for pieces in found:
        _check_choice(pieces, chat)
    pieces_of = [[_text(piece, chat) for piece in pieces] for pieces in found]
    return Answer(
        texts=["".join(texts) for texts in pieces_of],
        reasons=[pieces[-1]["finish_reason"] for pieces in found],
        usage=usage,
        deltas=[text for text in pieces_of[0] if text],
        logprobs=[_logprobs([piece["logprobs"] for piece in pieces], chat) for pieces in found],
    )


def _check_choice(pieces: list[dict[str, Any]], chat: bool) -> None:
    """null until the end, one reason, nothing after it; the role once and first."""
    assert [piece["finish_reason"] for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert pieces[-1]["finish_reason"] in ("stop", "length")
    assert _text(pieces[-1], chat) == ""
    if chat:
        assert pieces[0]["delta"] == {"role": "assistant", "content": ""}
        assert pieces[-1]["delta"] == {}
        assert not any("role" in piece["delta"] for piece in pieces[1:])


def _text(choice: dict[str, Any], chat: bool) -> str:
    text: str = choice["delta"].get("content", "") if chat else choice["text"]
    return text


def _logprobs(found: list[Any], chat: bool) -> Any:
    """Columns or entries of all chunks joined, as a plain answer has them."""
    there = [logprobs for logprobs in found if logprobs is not None]
    if not there:
        return None
    if chat:
        return {"content": [entry for logprobs in there for entry in logprobs["content"]], "refusal": None}
    return {
        name: None if there[0][name] is None else [entry for logprobs in there for entry in logprobs[name]]
        for name in there[0]
    }
