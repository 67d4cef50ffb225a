"""What every request passes first on its port: its path made canonical, an id, a line in the access log.

The line has no query, which may hold a key, and nothing of a body.
"""

import asyncio
import logging
import re
import time
import uuid
from typing import Any

import msgspec
from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope
from werkzeug.exceptions import HTTPException

from server import paths
from server.errors import ApiError, internal, invalid, stopping
from server.metrics import Metrics

logger = logging.getLogger("server.access")

SANE_ID = re.compile(rb"[\w.:/+=-]{1,128}", re.ASCII)
LEFT = 499  # nginx's number for a client that was gone before it had an answer
DRAIN_SECONDS = 0.5
NO_WEBSOCKETS = "There are no WebSockets here; the features stream is server-sent events over plain HTTP."
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
ROUTES = (
    "/health", "/metrics", "/v1/chat/completions", "/v1/completions", "/v1/models", "/v1/features/stream",
    "/v1/features/labels",
)  # fmt: skip


class Front:
    """An ASGI app around the one that answers, which can be changed for another at any time."""

    def __init__(self, name: str, app: ASGIFramework, metrics: Metrics, stop: asyncio.Event) -> None:
        self.app, self.metrics = app, metrics
        self._name, self._stop = name, stop

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] == "websocket":
            await _refuse(invalid(None, NO_WEBSOCKETS), "websocket.http", send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._stop)
        path = paths.canonical(scope["path"])
        try:
            await self._answer({**scope, "path": path}, exchange)
        finally:
            self._note(scope, path, exchange)

    async def _answer(self, scope: Any, exchange: "_Exchange") -> None:
        """By the app, or where that left it without one."""
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Exception as error:  # from below the app's own handlers
            if exchange.status:
                raise
            await _refuse(_told(error), "http", exchange.send)
        else:
            if exchange.given_up and not exchange.status:
                await _refuse(stopping(), "http", exchange.send)

    def _note(self, scope: Any, path: str, exchange: "_Exchange") -> None:
        status = exchange.status or LEFT
        escaped = scope["raw_path"].decode("ascii", "replace")  # so it cannot break the line
        left = "" if exchange.complete else ", left before the end"
        logger.info(
            "%s %s %s %d %d bytes %.0f ms %s%s",
            self._name, scope["method"], escaped, status, exchange.size, exchange.milliseconds(), exchange.id, left,
        )  # fmt: skip
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.responded(self._name, method, _route(path), status)


class _Exchange:
    """One request on its way in and its answer on its way out."""

    def __init__(self, scope: Any, receive: ASGIReceiveCallable, send: ASGISendCallable, stop: asyncio.Event) -> None:
        self.id = _request_id(scope["headers"])
        self.status, self.size, self.complete, self.given_up = 0, 0, False, False
        self._started = time.monotonic()
        self._closable = scope["http_version"].startswith("1")
        self._receive, self._send, self._stop = receive, send, stop
        self._all_received = asyncio.Event()

    async def receive(self) -> Any:
        """The next piece of the request. One that is still coming when the server stops is given up."""
        message = await (self._receive() if self._all_received.is_set() else self._piece())
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._all_received.set()
        return message

    async def send(self, message: Any) -> None:
        """Pass a piece of the answer on, the id added to its headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            more = [(b"x-request-id", self.id.encode())]
            if not await self._drained() and self._closable:
                more.append((b"connection", b"close"))
            message = {**message, "headers": [*message["headers"], *more]}
        await self._send(message)
        if message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)

    def milliseconds(self) -> float:
        """Since the request came."""
        return 1000 * (time.monotonic() - self._started)

    async def _piece(self) -> Any:
        coming, stopped = asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((coming, stopped), return_when=asyncio.FIRST_COMPLETED)
            self.given_up = not coming.done()
            return {"type": "http.disconnect"} if self.given_up else coming.result()
        finally:
            coming.cancel()
            stopped.cancel()

    async def _drained(self) -> bool:
        """Whether all of the request has come, within a moment.

        Hypercorn closes a connection whose answer ends before its request, and a client that wants to send its next
        request on it would find it gone.
        """
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._all_received.wait()
        except TimeoutError:
            return False
        return True


def _told(error: Exception) -> ApiError:
    """What the client hears. Werkzeug refuses a Host that cannot be a name before the app's handlers are in reach."""
    if isinstance(error, HTTPException):
        return ApiError(error.code or 500, f"{error.name}: the request's Host or address cannot be read.")
    logger.error("a request failed", exc_info=error)
    return internal()


async def _refuse(error: ApiError, kind: str, send: Any) -> None:
    """The whole answer. `kind` is that of the messages: http, or websocket.http where an upgrade was asked for."""
    body = msgspec.json.encode(error.body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if kind != "http":  # there `_Exchange` says whether the connection ends
        headers.append((b"connection", b"close"))
    await send({"type": f"{kind}.response.start", "status": error.status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body, "more_body": False})


def _request_id(headers: list[tuple[bytes, bytes]]) -> str:
    """The client's own, where it is fit for a header and a log; else a new one."""
    given = next((value for name, value in headers if name.lower() == b"x-request-id"), b"")
    return given.decode() if SANE_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"


def _route(path: str) -> str:
    """One of few, so that strangers cannot fill the metrics."""
    if path.startswith("/v1/models/"):
        return "/v1/models/{model}"
    return path if path in ROUTES else "other"
