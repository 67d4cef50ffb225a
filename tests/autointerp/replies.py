"""Replies of the Anthropic API, good and bad, as bytes on the wire."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

HANG = 3600.0  # seconds: longer than any client waits


@dataclasses.dataclass(frozen=True)
class Reply:
    """What a request gets, `delay` seconds after it came."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None  # bytes of the body after which the connection breaks


Request = dict[str, Any]
Script = Callable[[Request], Reply]


def prompt(request: Request) -> str:
    """The user's text of a request."""
    return str(request["messages"][0]["content"])


def message(
    text: str | None, stop_reason: str = "end_turn", delay: float = 0.0, tokens: tuple[int, int] = (100, 20)
) -> Reply:
    """A message of one text block, of none where `text` is None; `tokens` are those read and written."""
    content = [] if text is None else [{"type": "text", "text": text}]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stand-in",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
    }
    return Reply(json.dumps(body).encode(), delay=delay)


def answer(fields: dict[str, Any], delay: float = 0.0) -> Reply:
    """A structured answer."""
    return message(json.dumps(fields), delay=delay)


def fitting(request: Request) -> dict[str, Any]:
    """An object that fits the schema of the request: false, the first choice, or a few words told by the prompt."""
    properties = request["output_config"]["format"]["schema"]["properties"]
    words = "words " + hashlib.sha256(prompt(request).encode()).hexdigest()[:6]
    made = {"boolean": False, "integer": 0, "number": 0.0, "string": words}
    return {name: kind["enum"][0] if "enum" in kind else made[kind["type"]] for name, kind in properties.items()}


def good(request: Request) -> Reply:
    """The script of a server that answers everything."""
    return answer(fitting(request))


def refusal() -> Reply:
    return message(None, "refusal", tokens=(100, 0))


def cut_off(text: str = '{"label": "gree') -> Reply:
    return message(text, "max_tokens")


def error(status: int, kind: str, text: str = "no", code: str | None = None, **headers: str) -> Reply:
    """An error as the API words it; `retry_after_ms="10"` becomes the header retry-after-ms."""
    details = {"details": {"error_code": code}} if code else {}
    body = {"type": "error", "error": {"type": kind, "message": text, **details}, "request_id": "req_1"}
    return Reply(json.dumps(body).encode(), status, {name.replace("_", "-"): value for name, value in headers.items()})


def overloaded(retry_after_ms: str = "5") -> Reply:
    return error(529, "overloaded_error", retry_after_ms=retry_after_ms)


def rate_limited(**headers: str) -> Reply:
    return error(429, "rate_limit_error", **headers)


def spend_limit() -> Reply:
    return error(429, "rate_limit_error", "spend limit", "enforced_spend_limit_reached", retry_after_ms="5")


def html() -> Reply:
    return Reply(b"<html><body>Sign in</body></html>", headers={"content-type": "text/html"})


def broken() -> Reply:
    return Reply(b'{"id": "msg_1", "type": "mess')


def hang() -> Reply:
    return Reply(b"", delay=HANG)


def json_reply(value: object) -> Reply:
    return Reply(json.dumps(value).encode())
