"""A stand-in for the Anthropic API on loopback, over real HTTP: a Python function says what each request gets.

Messages, token counts and message batches as the official client uses them, and a record of what was asked: how many
at once, how often each prompt, with which headers.
"""

import asyncio
import collections
import contextlib
import hashlib
import json
import queue
import threading
from collections.abc import Callable, Iterator

from tests.autointerp.replies import (
    Reply,
    Request,
    Script,
    answer,
    broken,
    cut_off,
    error,
    fitting,
    good,
    hang,
    html,
    json_reply,
    message,
    overloaded,
    prompt,
    rate_limited,
    refusal,
    spend_limit,
)
from tests.autointerp.stand_in_batches import Batches

__all__ = [
    "Reply",
    "Request",
    "Script",
    "StandIn",
    "answer",
    "broken",
    "cut_off",
    "error",
    "fitting",
    "good",
    "hang",
    "html",
    "message",
    "overloaded",
    "prompt",
    "rate_limited",
    "refusal",
    "running",
    "serve_forever",
    "spend_limit",
]

KEPT = 100  # requests whose headers and bodies are kept


class StandIn:
    """The server; `script` may be changed at any time."""

    def __init__(self, script: Script = good) -> None:
        self.script = script
        self.url = ""
        self.in_flight = self.most_in_flight = self.requests = 0  # of /v1/messages
        self.calls: collections.Counter[bytes] = collections.Counter()  # by the prompt's digest, batches among them
        self.headers: collections.deque[dict[str, str]] = collections.deque(maxlen=KEPT)
        self.bodies: collections.deque[Request] = collections.deque(maxlen=KEPT)
        self.count_reply: Reply | None = None  # instead of a count of tokens
        self.batches = Batches()

    def calls_of(self, text: str) -> int:
        """How often a prompt was sent, in batches that were created too."""
        sent = [request["params"] for requests in self.batches.sent.values() for request in requests]
        return self.calls[_digest(text)] + sum(prompt(request) == text for request in sent)

    def record(self) -> dict[str, int]:
        """What a caller in another process may ask for with GET /record."""
        most = max(self.calls.values(), default=0)
        return {"requests": self.requests, "most_in_flight": self.most_in_flight, "most_calls_of_a_prompt": most}

    async def start(self) -> asyncio.Server:
        """Listen on a free port of loopback."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.headers.append(headers)
                reply = await self._reply(method, path.partition("?")[0], json.loads(body) if body else {}, reader)
                lines = {"content-type": "application/json", **reply.headers, "content-length": str(len(reply.body))}
                text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
                writer.write(f"HTTP/1.1 {reply.status} S\r\n{text}\r\n".encode() + reply.body[: reply.cut])
                await writer.drain()
                if reply.cut is not None:
                    return

    async def _reply(self, method: str, path: str, body: Request, reader: asyncio.StreamReader) -> Reply:
        if path != "/v1/messages":
            reply = self._other(method, path, body)
            return await _delayed(reply, reader)
        self.requests += 1
        self.calls[_digest(prompt(body))] += 1
        self.bodies.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await _delayed(self.script(body), reader)
        finally:
            self.in_flight -= 1

    def _other(self, method: str, path: str, body: Request) -> Reply:
        if path == "/record":
            return json_reply(self.record())
        if path == "/v1/messages/count_tokens":
            tokens = len(json.dumps([body["messages"], body.get("system")])) // 4
            return self.count_reply or json_reply({"input_tokens": tokens})
        return self.batches.reply(method, path, body, self.script, self.url)


async def _delayed(reply: Reply, reader: asyncio.StreamReader) -> Reply:
    """The reply after its delay, or ConnectionError once the client has given up and closed the connection."""
    if reply.delay:
        gone = asyncio.ensure_future(reader.read(1))
        done, _ = await asyncio.wait([gone], timeout=reply.delay)
        if done:
            raise ConnectionError
        gone.cancel()
        await asyncio.wait([gone])
    return reply


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


@contextlib.contextmanager
def running(script: Script = good) -> Iterator[StandIn]:
    """A server in a thread of this process."""
    server = StandIn(script)
    ready: queue.Queue[Callable[[], object]] = queue.Queue()

    async def serve() -> None:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        listening = await server.start()
        ready.put(lambda: loop.call_soon_threadsafe(end.set))
        await end.wait()
        listening.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    stop = ready.get(timeout=10)
    try:
        yield server
    finally:
        stop()
        thread.join(10)


def serve_forever(announce: Callable[[str], object], script: Script = good) -> None:
    """A server in a process of its own, until that is ended: `announce` gets its address, `conn.send` say."""

    async def serve() -> None:
        server = StandIn(script)
        async with await server.start() as listening:
            announce(server.url)
            await listening.serve_forever()

    asyncio.run(serve())
