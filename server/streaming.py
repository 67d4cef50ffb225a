"""A streamed answer: its frames from first to last, whatever their shape."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

import msgspec

from server import sse
from server.choice import Delta
from server.completion import Completion
from server.errors import ApiError

DONE = sse.frame(b"[DONE]")


async def frames(
    completion: Completion,
    first: Iterable[msgspec.Struct],
    chunk: Callable[[Delta], msgspec.Struct],
    last: Callable[[], msgspec.Struct] | None,
) -> AsyncIterator[bytes]:
    """`first`, a chunk a delta, `last` (the usage, where asked for), [DONE]; an error takes the place of the rest."""
    for struct in first:
        yield _frame(struct)

    async def next_chunk() -> bytes | None:
        delta = await completion.next_delta()
        if delta is None:
            return None
        if delta.prompt:  # thousands of rows, which would hold up everybody
            return await asyncio.to_thread(lambda: _frame(chunk(delta)))
        return _frame(chunk(delta))

    try:
        async for found in sse.until_end(next_chunk, completion.heartbeat_seconds):
            yield found
    except ApiError as error:
        yield _frame(error.body)
        return
    if last is not None:
        yield _frame(last())
    yield DONE


def _frame(struct: msgspec.Struct) -> bytes:
    return sse.frame(msgspec.json.encode(struct))
