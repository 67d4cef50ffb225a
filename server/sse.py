"""Server-sent events on the wire: one frame an event, and the response that carries them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from quart import Response

HEARTBEAT = b": heartbeat\n\n"


def frame(data: bytes, *, event: str | None = None, event_id: int | None = None) -> bytes:
    """One event. `data` is one line: JSON from msgspec escapes every newline."""
    name = b"" if event is None else b"event: %s\n" % event.encode()
    number = b"" if event_id is None else b"id: %d\n" % event_id
    return name + number + b"data: " + data + b"\n\n"


def response(frames: AsyncIterator[bytes] | None) -> Response:
    """An endless answer that no cache, proxy or time limit holds back; without frames, its headers only."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    answer = Response(frames or b"", content_type="text/event-stream", headers=headers)
    answer.timeout = None  # Quart would cut it off after a minute
    return answer


async def until_end(
    next_frame: Callable[[], Awaitable[bytes | None]], heartbeat_seconds: float
) -> AsyncIterator[bytes]:
    """Frames until one is None, a heartbeat wherever none comes for so long (0: never).

    `next_frame` must bear cancelling.
    """
    while True:
        try:
            async with asyncio.timeout(heartbeat_seconds or None):
                found = await next_frame()
        except TimeoutError:
            found = HEARTBEAT
        if found is None:
            return
        yield found
