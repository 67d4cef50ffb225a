"""The form of a case in cases/*.json, and how one entry becomes the tests of it.

Plain cases give `request`, which is merged over a small valid one; a field "<leave out>" is left out. They are sent
twice, streamed and not, unless `request` says which, and what is expected holds for both. `each` lists relatives:
differences from `request`, each a test of its own. `raw` is a body as it is, `wire` a whole HTTP request as it is; in
these two, characters below 256 are bytes. {"repeat": ["x", 3]} stands for "xxx", in any place.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent / "cases"
LEFT_OUT = "<leave out>"
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
SMALL = {CHAT: {"messages": [{"role": "user", "content": "hi"}]}, TEXT: {"prompt": "hi"}}


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must come back. Fields that are left out are not looked at."""

    status: int = 200
    error: dict[str, Any] | None = None  # of the error object; "message" is a regular expression
    headers: dict[str, str | None] = {}  # regular expressions; null: absent
    body: dict[str, Any] | None = None  # a part of the plain answer
    texts: list[str] | None = None  # of the choices, in both modes
    reasons: list[str] | None = None  # finish_reason of the choices, in both modes
    deltas: list[str] | None = None  # pieces of the first choice of a stream, empty ones left out
    usage: list[int] | None = None  # prompt, completion
    prompts: list[str] | None = None  # as they reached the engine, control tokens by their names
    same_prompt_as: dict[str, Any] | None = None  # another request that must reach the engine with the same ids
    engine: dict[str, Any] | None = None  # of the GenerationRequest's sampling options and max_tokens
    never: list[str] = []  # not in any byte of the answer


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of a file."""

    id: str  # that of openai_cases, a listed case; with a letter behind, a relative
    what: str
    expect: Expected = Expected()
    port: str = "chat"
    method: str = "POST"
    path: str = CHAT
    headers: dict[str, str | None] = {}  # null: not sent
    request: dict[str, Any] | None = None
    each: list[dict[str, Any]] = msgspec.field(default_factory=lambda: [{}])
    raw: str | None = None
    wire: str | None = None
    script: list[str | int] | None = None  # tokens to answer with: a text that is one token, a byte, "<stop>"
    fail_at: int | None = None  # the token at which the device fails
    server: str = "chat"  # or "base", a model without chat template, or "keyed", which asks for a key

    def requests(self) -> list[dict[str, Any]]:
        """The bodies to send."""
        small = SMALL.get(self.path, {})
        return [_complete({**small, **(self.request or {}), **difference}) for difference in self.each]


def load(name: str) -> list[Case]:
    """The cases of one file."""
    return msgspec.convert(_expanded(json.loads((FOLDER / name).read_text(encoding="utf-8"))), list[Case])


def _complete(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value != LEFT_OUT}


def _expanded(value: Any) -> Any:
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["repeat"]:
        text, times = value["repeat"]
        return text * times
    return {name: _expanded(item) for name, item in value.items()}
