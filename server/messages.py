"""The messages of a chat request as (role, text), checked before any template sees them."""

from server.errors import ApiError, invalid
from server.schemas import ChatRequest, ContentPart, Message

# What a tool or a function returned is told to the model as the user's text: its template knows no such role.
PROMPT_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}
MAY_BE_EMPTY = ("assistant",)  # a replayed tool call has no text


def prompt_messages(request: ChatRequest) -> list[tuple[str, str]]:
    """(role, text) of each message, role one of system, user and assistant. Raises ApiError naming messages[i]."""
    if request.messages is None:
        raise invalid("messages", "messages is missing.")
    if not request.messages:
        raise invalid("messages", "messages is empty; expected at least one message.", code="empty_array")
    return [_prompt_message(message, f"messages[{i}]") for i, message in enumerate(request.messages)]


def _prompt_message(message: Message, path: str) -> tuple[str, str]:
    if message.role not in PROMPT_ROLES:
        known = ", ".join(PROMPT_ROLES)
        raise invalid(f"{path}.role", f"{path}.role is {message.role!r}; expected one of {known}.")
    if not message.content and message.content != "" and message.role not in MAY_BE_EMPTY:
        raise invalid(f"{path}.content", f"{path}.content is missing, null or an empty list; expected text.")
    return PROMPT_ROLES[message.role], _text(message, path)


def _text(message: Message, path: str) -> str:
    """A message's text; parts are joined with nothing between them."""
    if not isinstance(message.content, list):
        return message.content or ""
    return "".join(_part(part, message.role, path) for part in message.content)


def _part(part: ContentPart, role: str, path: str) -> str:
    if part.type == "text" and part.text is not None:
        return part.text
    if part.type == "refusal" and part.refusal is not None and role == "assistant":
        return part.refusal
    raise _unsupported(part, path)


def _unsupported(part: ContentPart, path: str) -> ApiError:
    if part.type == "text":
        return invalid(f"{path}.content", f"{path}.content has a part of type 'text' without its text.")
    return invalid(f"{path}.content", f"{path}.content has a part of type {part.type!r}; only text is supported.")
