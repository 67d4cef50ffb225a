"""The readers of the features stream under load: good ones, ones that stall, ones that come and go."""

import asyncio
import collections
import contextlib
import json
import random
import socket
from collections.abc import AsyncIterator

import httpx

HEALTHY, STALLED = 3, 1  # of five; the fifth comes and goes
STAY_SECONDS = (1.0, 4.0)
AWAY_SECONDS = 0.2


class Readers:
    """All of them, and what they saw. The first healthy one also adds up every answer."""

    def __init__(self, url: str, number: int) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.stopping = False
        self._address = httpx.URL(url)
        self._connected = [asyncio.Event() for _ in range(number)]
        self.tasks = [asyncio.create_task(self._read(n)) for n in range(number)]
        self._answers: dict[str, int] = {}

    async def connected(self) -> None:
        """Wait until every reader has been let in."""
        await asyncio.gather(*(event.wait() for event in self._connected))

    def finish(self) -> None:
        """What is only known at the end."""
        self.counts["answers without an end"] = len(self._answers)

    async def _read(self, number: int) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if number % 5 < HEALTHY:
                await self._stay(number)
            elif number % 5 < HEALTHY + STALLED:
                await self._stall(number)
            else:
                await self._come_and_go(number)
        if not self.stopping:
            self.counts["LOST connections"] += 1

    async def _stay(self, number: int) -> None:
        last = None
        async for name, event_id, data in self._events(number, None):
            last = self._follows(last, name, event_id, "healthy")
            if number == 0:
                self._add_up(name, data)

    async def _stall(self, number: int) -> None:
        async with self._stream(number, None):
            while not self.stopping:
                await asyncio.sleep(STAY_SECONDS[0])

    async def _come_and_go(self, number: int) -> None:
        drawn, last = random.Random(number), None
        while not self.stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(drawn.uniform(*STAY_SECONDS)):
                    async for name, event_id, _ in self._events(number, last):
                        last = self._follows(last, name, event_id, "returning")
            self.counts["reconnects"] += 1
            await asyncio.sleep(AWAY_SECONDS)

    def _follows(self, last: int | None, name: str, event_id: int | None, who: str) -> int | None:
        """Count an event, and as lost or repeated where it is not the one after `last`."""
        if event_id is None:
            self.counts[f"LOST {who}: {name}"] += 1
            return last
        self.counts[f"events read, {who}"] += 1
        if last is not None and event_id != last + 1:
            self.counts[f"LOST {who}: {'holes' if event_id > last else 'repeats'}"] += 1
        return event_id

    def _add_up(self, name: str, data: bytes) -> None:
        event = json.loads(data)
        if name == "feature_activation":
            answer = event["completion_id"]
            if self._answers.setdefault(answer, 0) != event["token_index"]:
                self.counts["LOST tokens of an answer"] += 1
            self._answers[answer] += 1
        elif name == "generation_complete":
            if self._answers.pop(event["completion_id"], 0) != event["total_tokens"]:
                self.counts["LOST tokens of an answer"] += 1
            self.counts[f"answers ended by {event['reason']}"] += 1

    async def _events(self, number: int, last: int | None) -> AsyncIterator[tuple[str, int | None, bytes]]:
        """(name, id, data) of each event."""
        buffer = b""
        async with self._stream(number, last) as reader:
            while size := int(await reader.readline(), 16):
                buffer += (await reader.readexactly(size + 2))[:-2]
                *frames, buffer = buffer.split(b"\n\n")
                for frame in frames:
                    fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if line[:1] != b":")
                    if b"event" in fields:
                        event_id = int(fields[b"id"]) if b"id" in fields else None
                        yield fields[b"event"].decode(), event_id, fields[b"data"]

    @contextlib.asynccontextmanager
    async def _stream(self, number: int, last: int | None) -> AsyncIterator[asyncio.StreamReader]:
        connection = socket.create_connection((self._address.host, self._address.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            resume = "" if last is None else f"Last-Event-ID: {last}\r\n"
            writer.write(f"GET /v1/features/stream HTTP/1.1\r\nHost: localhost\r\n{resume}\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            self._connected[number].set()
            yield reader
        finally:
            writer.transport.abort()
