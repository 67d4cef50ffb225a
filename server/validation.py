"""From the bytes of a chat request to checked fields, messages and options. Every refusal names the field."""

import dataclasses
import re

import msgspec

from neuroscope_jax.engine.requests import SamplingOptions
from server.errors import ApiError, invalid
from server.schemas import ChatRequest, Message

MAX_STOPS = 4
PROMPT_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "user"}
MAY_BE_EMPTY = ("assistant",)  # a replayed tool call has no text
ERROR_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


def parse_chat_request(body: bytes, content_type: str) -> ChatRequest:
    """A request all of whose fields can be done. Raises ApiError."""
    if not re.fullmatch(r"application/([\w.-]+\+)?json", content_type.partition(";")[0].strip().lower()):
        raise ApiError(415, f"Content-Type is {content_type or 'missing'!r}; send 'Content-Type: application/json'.")
    request = _decode(body)
    _refuse_unsupported(request)
    if len(stop_strings(request)) > MAX_STOPS:
        raise invalid("stop", f"stop has more than {MAX_STOPS} strings.")
    if request.top_logprobs and not request.logprobs:
        raise invalid("top_logprobs", "top_logprobs needs logprobs to be true.")
    return request


def prompt_messages(request: ChatRequest) -> list[tuple[str, str]]:
    """(role, text) of each message, role one of system, user and assistant. Raises ApiError naming messages[i]."""
    if request.messages is None:
        raise invalid("messages", "messages is missing.")
    if not request.messages:
        raise invalid("messages", "messages is empty; expected at least one message.", code="empty_array")
    return [_prompt_message(message, f"messages[{i}]") for i, message in enumerate(request.messages)]


def sampling_options(request: ChatRequest, defaults: SamplingOptions) -> SamplingOptions:
    """The request's options, its nulls replaced by the model's defaults."""
    fields = {field.name: getattr(request, field.name) for field in dataclasses.fields(SamplingOptions)}
    return dataclasses.replace(defaults, **{name: value for name, value in fields.items() if value is not None})


def stop_strings(request: ChatRequest) -> list[str]:
    """The stop strings that are not empty."""
    stops = [request.stop] if isinstance(request.stop, str) else request.stop or []
    return [stop for stop in stops if stop]


def max_new_tokens(request: ChatRequest, room: int) -> int:
    """The smallest of what was asked for, under either name, and the room in the context."""
    return min(limit for limit in (request.max_tokens, request.max_completion_tokens, room) if limit is not None)


def _refuse_unsupported(request: ChatRequest) -> None:
    """Fields that are understood, cannot be done and would change the answer."""
    if (request.n or 1) > 1:
        raise invalid("n", "n greater than 1 is not supported; send the request once for each answer.")
    if request.tools and request.tool_choice != "none":
        raise invalid("tools", "This model does not support tools; send the request without them.")
    if request.functions:
        raise invalid("functions", "This model does not support tools; send the request without functions.")
    if request.logit_bias:
        raise invalid("logit_bias", "logit_bias is not supported.")
    if request.response_format and request.response_format.type != "text":
        found = request.response_format.type
        raise invalid("response_format", f"response_format type {found!r} is not supported; only 'text' is.")


def _prompt_message(message: Message, path: str) -> tuple[str, str]:
    if message.role not in PROMPT_ROLES:
        known = ", ".join(PROMPT_ROLES)
        raise invalid(f"{path}.role", f"{path}.role is {message.role!r}; expected one of {known}.")
    if message.content is None and message.role not in MAY_BE_EMPTY:
        raise invalid(f"{path}.content", f"{path}.content is missing or null; expected text.")
    return PROMPT_ROLES[message.role], _text(message, path)


def _text(message: Message, path: str) -> str:
    """A message's text; parts are joined with nothing between them."""
    if not isinstance(message.content, list):
        return message.content or ""
    for part in message.content:
        if part.type != "text" or part.text is None:
            raise invalid(
                f"{path}.content", f"{path}.content has a part of type {part.type!r}; only text is supported."
            )
    return "".join(part.text or "" for part in message.content)


def _decode(body: bytes) -> ChatRequest:
    """Strict JSON to the struct; msgspec's own error with the place put in front, as `messages[0].role: …`."""
    try:
        return msgspec.json.decode(body, type=ChatRequest)
    except msgspec.ValidationError as error:
        text = str(error)
        match = ERROR_PATH.search(text)
        where = match["path"].partition("[...]")[0] if match else None  # [...]: some value of an object
        raise invalid(where, f"{where or 'body'}: {ERROR_PATH.sub('', text)}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(None, f"The body is not valid JSON: {error}") from error
