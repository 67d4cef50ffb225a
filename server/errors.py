"""Errors in OpenAI's shape, {"error": {"message", "type", "param", "code"}}, whatever the status."""

import logging
from collections.abc import Iterable

from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

from server import paths
from server.replies import json_reply
from server.schemas import ErrorBody, ErrorObject

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5
MOST_CHARACTERS = 2_000  # of a message, which may repeat what the client sent


class ApiError(Exception):
    """Something a client is told: an HTTP status before the answer began, an error frame after."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        if len(message) > MOST_CHARACTERS:
            message = f"{message[: MOST_CHARACTERS // 2]} … {message[-MOST_CHARACTERS // 2 :]}"
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.body = ErrorBody(ErrorObject(message, _error_type(status), param, code))


def invalid(param: str | None, message: str, code: str | None = None) -> ApiError:
    """A request that cannot be done as it is."""
    return ApiError(400, message, param=param, code=code)


def stopping() -> ApiError:
    """The server has been told to end."""
    return ApiError(503, "The server is shutting down.", code="shutting_down")


def loading() -> ApiError:
    """The ports are open before the model is there."""
    wait = {"Retry-After": str(RETRY_SECONDS)}
    return ApiError(503, "The model is still loading; try again soon.", code="loading", headers=wait)


def engine_stopped() -> ApiError:
    """The engine thread is dead; only a restart helps."""
    return ApiError(503, "The engine has stopped; restart the server.", code="engine_stopped")


def unknown_model(name: str, served: Iterable[str]) -> ApiError:
    """A request for a model that is not the one loaded."""
    message = f"The model {name!r} does not exist here; this server has {', '.join(map(repr, served))}."
    return ApiError(404, message, param="model", code="model_not_found")


def no_chat(served: str) -> ApiError:
    """A chat for a base checkpoint, in the words of OpenAI's own message."""
    message = (
        f"{served!r} is not a chat model: it has no chat template. Did you mean to use /v1/completions? "
        "For chats serve its instruction-tuned sister (...-it)."
    )
    return invalid("model", message)


def context_exceeded(param: str, limit: int, found: object) -> ApiError:
    """In the words of OpenAI's own message, which agents look for before they shorten a conversation."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your {param} resulted in {found} tokens, "
        f"and the answer needs at least one. Please reduce the length of the {param}."
    )
    return invalid(param, message, code="context_length_exceeded")


def queue_full(error: Exception) -> ApiError:
    """As many requests wait as may."""
    wait = {"Retry-After": str(RETRY_SECONDS)}
    return ApiError(429, f"The queue is full: {error}.", code="queue_full", headers=wait)


def internal() -> ApiError:
    """A bug or a failing device; the cause goes to the log, not to the client."""
    return ApiError(500, "The server failed while working on this request; its log says why.")


def _error_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return "rate_limit_error" if status == 429 else "invalid_request_error"


def register_error_handlers(app: Quart) -> None:
    """Answer every exception of a request, the framework's own included, in the one shape."""

    async def on_api_error(error: ApiError) -> Response:
        return _reply(error)

    async def on_http_error(error: HTTPException) -> Response:
        headers = {name: value for name, value in error.get_headers() if name != "Content-Type"}
        message = f"{error.name}: {error.description}" if error.description else error.name
        if error.code == 404:
            message = f"No such path. There are {', '.join(sorted(str(rule) for rule in app.url_map.iter_rules()))}."
            message += paths.hint(request.path)
        if error.code == 413:
            message = f"The body is too large: at most {app.config['MAX_CONTENT_LENGTH']} bytes are read."
        return _reply(ApiError(error.code or 500, message, headers=headers))

    async def on_bug(error: Exception) -> Response:
        logger.error("a request failed", exc_info=error)
        return _reply(internal())

    app.register_error_handler(ApiError, on_api_error)
    app.register_error_handler(HTTPException, on_http_error)
    app.register_error_handler(Exception, on_bug)


def _reply(error: ApiError) -> Response:
    return json_reply(error.body, error.status, error.headers)
