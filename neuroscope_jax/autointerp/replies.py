"""What came back over the wire, read as the fields asked for or as the reason why there are none."""

import dataclasses
import datetime
from typing import Any

import msgspec

from neuroscope_jax.autointerp.question import Answer
from neuroscope_jax.autointerp.quoting import message as shortened

STOPS = {"refusal": "refusal", "max_tokens": "cut off", "model_context_window_exceeded": "cut off"}
WHOLE = (None, "end_turn", "stop_sequence")
OF_THE_MODEL = ("refusal", "cut off", "stopped", "not JSON", "wrong ")  # its failures; others are of the way
MOST_TOKENS = 2_000_000  # of a call; more than any model reads or writes
JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
}


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _Tokens(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0


class Message(msgspec.Struct):
    """What is read of the API's message object."""

    content: list[_Block]
    usage: _Tokens
    stop_reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Reading:
    """The object that a message holds, whatever its keys, or a failure in words; the tokens are charged either way."""

    fields: dict[str, Any] | None = None
    failure: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


def by_the_model(failure: str | None) -> bool:
    """True for an answer that the model gave, usable or not: it was paid for, and asking again would be paid again."""
    return failure is None or failure.startswith(OF_THE_MODEL)


def read_body(body: bytes) -> Reading:
    """The body of an answer with status 200, which a proxy may have sent as well."""
    try:
        return read(msgspec.json.decode(body, type=Message))
    except msgspec.ValidationError:
        return Reading(failure="not a message of the API")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Reading(failure="HTML page" if body.lstrip()[:1] == b"<" else "broken JSON")


def read(message: Message) -> Reading:
    """A message whose text should be one JSON object."""
    tokens = message.usage
    cached = tokens.cache_creation_input_tokens or 0, tokens.cache_read_input_tokens or 0
    if not all(0 <= count <= MOST_TOKENS for count in (tokens.input_tokens, tokens.output_tokens, *cached)):
        return Reading(failure="usage out of range")
    charged: dict[str, Any] = {"input_tokens": tokens.input_tokens + sum(cached), "output_tokens": tokens.output_tokens}
    if message.stop_reason not in WHOLE:
        reason = shortened(str(message.stop_reason))
        return Reading(failure=STOPS.get(reason, f"stopped: {reason}"), **charged)
    text = "".join(block.text for block in message.content if block.type == "text")
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Reading(failure="not JSON", **charged)
    if not isinstance(fields, dict):
        return Reading(failure="not JSON: expected an object", **charged)
    if any(isinstance(value, dict | list) for value in fields.values()):
        return Reading(failure="not JSON: expected plain values", **charged)
    return Reading(fields, **charged)


def answer_of(key: str, feature: int, part: str, reading: Reading) -> Answer:
    """What is kept of what came back, as it came."""
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    tokens = reading.input_tokens, reading.output_tokens
    return Answer(key, feature, part, reading.fields, reading.failure, *tokens, date)


def misfit(fields: dict[str, Any], schema: dict[str, Any]) -> str | None:
    """What keeps `fields` from being all of the schema's properties and nothing else, or None. Quotes no value."""
    properties: dict[str, dict[str, Any]] = schema["properties"]
    if missing := [name for name in properties if name not in fields]:
        return f"wrong keys: {', '.join(missing)} missing"
    if more := len(fields.keys() - properties.keys()):
        return f"wrong keys: {more} that were not asked for"
    for name, kind in properties.items():
        if "enum" in kind and fields[name] not in kind["enum"]:
            return f"wrong value: {name} is none of {', '.join(map(str, kind['enum']))}"
        if "type" in kind and not _is_a(fields[name], kind["type"]):
            return f"wrong type: {name} is not a {kind['type']}"
    return None


def _is_a(value: object, name: str) -> bool:
    if isinstance(value, bool):  # which Python takes for an int
        return name == "boolean"
    return isinstance(value, JSON_TYPES[name])
