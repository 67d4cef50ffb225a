"""A server over an engine whose tokens and features can be worked out by hand, and ways to talk to it.

Token ids 0 to 25 are the letters a to z; id 100 + b is the byte b. Without a script, token i of an answer is
(last letter of the prompt + i + 1) mod 26, so a prompt that ends in "a" is answered "bcdef…". Run as a program, this
file is such a server in a process of its own, for the tests of signals.
"""

import asyncio
import codecs
import contextlib
import json
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import httpx
import openai
import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.engine.requests import (
    Deliver,
    Finished,
    FinishReason,
    GeneratedToken,
    GenerationRequest,
    PromptScored,
    QueueFull,
    TokenFeatures,
)
from neuroscope_jax.features.label_details import LabelDetail, Score, WrongSequence
from server.app import run, serve
from server.ports import bind_ports
from server.state import ServerState

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BYTE, BOS, STOP = 100, 26, 27
LAYER, WIDTH = 3, 64
WAIT_SECONDS = 20.0  # how long a test waits for what must happen; no test measures time


class FakeTokenizer:
    """Letters of the messages, all others left out, after one BOS."""

    longest_token = 1
    vocabulary_size = BYTE + 256
    bos_id = BOS
    has_chat_template = True

    def encode_raw(self, text: str) -> tuple[int, ...]:
        return tuple(LETTERS.index(c) for c in text.lower() if c in LETTERS)

    def spelled_out(self, ids: Iterable[int]) -> str:
        return "".join(map(self.token_text, ids))

    def encode_chat(self, messages: list[tuple[str, str]]) -> tuple[int, ...]:
        text = "".join(text for _, text in messages)
        return (BOS, *(LETTERS.index(c) for c in text.lower() if c in LETTERS))

    def detokenizer(self) -> "FakeDetokenizer":
        return FakeDetokenizer()

    def token_bytes(self, token_id: int) -> bytes:
        if token_id >= BYTE:
            return bytes([token_id - BYTE])
        return LETTERS[token_id].encode() if token_id < BOS else b""

    def token_text(self, token_id: int) -> str:
        return f"<{token_id}>" if token_id >= BOS else LETTERS[token_id]


class FakeDetokenizer:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        return self._decoder.decode(FakeTokenizer().token_bytes(token_id))

    def flush(self) -> str:
        return self._decoder.decode(b"", final=True)


SCORE = Score("scored", 0.58, 0.66, 0.5, 0.06, 50, 20, 10, 1, "judge-1", [WrongSequence("a sequence", True)])
DETAILS = {
    2: LabelDetail("label 2", "labelled", confidence="high", model="labeller-1", date="2030-01-02", score=SCORE),
    3: LabelDetail(None, "dead", reason="never fired"),
}


class FakeLabels:
    sae_id = "fake/layer_3/width_64/average_l0_3"
    width = WIDTH

    def text(self, index: int) -> str:
        return f"label {index}"

    def all(self) -> dict[str, str]:
        return {str(i): self.text(i) for i in range(WIDTH)}

    def source_of(self, index: int) -> str:
        return "autointerp" if index in (1, 2) else "numeric"

    def detail_of(self, index: int) -> LabelDetail | None:
        return DETAILS.get(index)


def fake_features(index: int, token_id: int) -> TokenFeatures:
    """What the fake SAE sees: three features, their strengths and the filtered count follow from index and id."""
    indices = tuple((7 * token_id + k) % WIDTH for k in range(3))
    return TokenFeatures(LAYER, indices, (3.0, 2.0, 1.0), None, index % 4)


def fake_scores(request: GenerationRequest) -> PromptScored:
    """Token i of a prompt has the logprob -i, and so has it as its own only alternative."""
    behind = list(enumerate(request.prompt_ids))[1:]
    top = tuple(((token_id, -float(i)),) if request.sampling.top_logprobs else () for i, token_id in behind)
    return PromptScored(tuple(-float(i) for i, _ in behind), top)


class FakeGeneration:
    def __init__(self, request: GenerationRequest, deliver: Deliver, engine: "FakeEngine") -> None:
        self.request, self.deliver, self.cancelled, self._engine = request, deliver, False, engine

    def cancel(self) -> None:
        with self._engine.changed:
            self.cancelled = True
            self._engine.changed.notify_all()


class FakeEngine:
    """Engine on a thread. `permit` lets it make that many more tokens; None, the start, is no limit."""

    context_length = 64

    def __init__(self, queue_size: int = 32) -> None:
        self.changed = threading.Condition()
        self.permits: int | None = None
        self.script: Sequence[int] | None = None  # ids to deliver in the place of the arithmetic; STOP ends
        self.fail_at: int | None = None  # raise at this token
        self.generations: list[FakeGeneration] = []
        self.finished: list[FinishReason] = []
        self._queue: queue.Queue[FakeGeneration | None] = queue.Queue()
        self._waiting, self._queue_size = 0, queue_size
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def permit(self, tokens: int) -> None:
        with self.changed:
            self.permits = (self.permits or 0) + tokens
            self.changed.notify_all()

    def submit(self, request: GenerationRequest, deliver: Deliver) -> FakeGeneration:
        if self._waiting >= self._queue_size and not request.continues:
            raise QueueFull(f"{self._waiting} requests are waiting already")
        self._waiting += 1
        generation = FakeGeneration(request, deliver, self)
        self.generations.append(generation)
        self._queue.put(generation)
        return generation

    def close(self) -> None:
        for generation in self.generations:
            generation.cancel()
        self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (generation := self._queue.get()) is not None:
            self._waiting -= 1
            delivered, reason, error = 0, "length", None
            try:
                if generation.request.score_prompt:
                    generation.deliver(fake_scores(generation.request))
                for token in self._tokens(generation):
                    generation.deliver(token)
                    delivered += 1
                reason = self._reason(generation, delivered)
            except RuntimeError as failure:
                reason, error = "error", failure
            self.finished.append(reason)
            generation.deliver(Finished(reason, delivered, error))

    def _reason(self, generation: FakeGeneration, delivered: int) -> FinishReason:
        if generation.cancelled:
            return "cancelled"
        return "length" if delivered == generation.request.max_tokens else "stop"

    def _tokens(self, generation: FakeGeneration) -> Iterator[GeneratedToken]:
        prompt = generation.request.prompt_ids
        arithmetic = [(prompt[-1] + i + 1) % 26 for i in range(generation.request.max_tokens)]
        input_id = prompt[-1]
        for index, token_id in enumerate((self.script or arithmetic)[: generation.request.max_tokens]):
            if index == self.fail_at:
                raise RuntimeError("secret detail of a failing device")
            if not self._may_go_on(generation) or token_id == STOP:
                return
            top = tuple(((token_id + k) % 26, -0.5 - k) for k in range(generation.request.sampling.top_logprobs))
            position = len(prompt) - 1 + index
            features = (fake_features(index, token_id),)
            yield GeneratedToken(index, token_id, -0.5, top, position, input_id, features)
            input_id = token_id

    def _may_go_on(self, generation: FakeGeneration) -> bool:
        with self.changed:
            self.changed.wait_for(lambda: generation.cancelled or self.permits != 0)
            if self.permits:
                self.permits -= 1
            return not generation.cancelled


class RunningServer:
    """Both ports of a server in this event loop, and clients for them."""

    def __init__(self, state: ServerState, engine: FakeEngine, chat_url: str, features_url: str) -> None:
        self.state, self.engine, self.chat_url, self.features_url = state, engine, chat_url, features_url
        self.stop = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.http = httpx.AsyncClient(timeout=WAIT_SECONDS)
        self.openai = openai.AsyncOpenAI(base_url=f"{chat_url}/v1", api_key="any", max_retries=0, timeout=WAIT_SECONDS)

    async def chat(self, prompt: str = "a", **fields: Any) -> httpx.Response:
        """POST a chat request as a raw client would."""
        body = {"model": "demo", "messages": [{"role": "user", "content": prompt}], **fields}
        return await self.http.post(f"{self.chat_url}/v1/chat/completions", json=body)

    @contextlib.asynccontextmanager
    async def features(self) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
        """(name, data) of each event of the features stream, from a reader that is connected."""
        async with self.http.stream("GET", f"{self.features_url}/v1/features/stream", timeout=None) as response:
            assert response.headers["content-type"] == "text/event-stream"
            lines = response.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            yield parse_events(lines)

    async def completion_events(self, events: AsyncIterator[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """The data of every event up to the next generation_complete, which comes last."""
        found = []
        async with asyncio.timeout(WAIT_SECONDS):
            async for name, data in events:
                found.append(data)
                if name == "generation_complete":
                    return found
        raise AssertionError("the features stream ended")


async def parse_events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Server-sent events from lines; comments are left out."""
    fields: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], json.loads(fields["data"])
            fields = {}


async def until(condition: Callable[[], bool]) -> None:
    """Let everything else run until a condition holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
async def start_server() -> AsyncIterator[Callable[..., Any]]:
    """A function that starts one server, given fields of its config; it is stopped after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(queue_size: int = 32, **fields: Any) -> RunningServer:
            config = NeuroscopeConfig(model_id="demo", port=0, features_port=0, **fields)
            engine = FakeEngine(queue_size)
            stack.callback(engine.close)
            ports = bind_ports(config)
            state = ServerState(config, engine, FakeTokenizer(), FakeLabels())
            server = RunningServer(state, engine, ports.chat.url, ports.features.url)
            ready = asyncio.Event()
            server.task = asyncio.create_task(serve(state, ports, server.stop, ready.set))
            stack.push_async_callback(_stop, server)
            await ready.wait()
            return server

        yield start


async def _stop(server: RunningServer) -> None:
    await server.http.aclose()
    await server.openai.close()
    server.stop.set()
    async with asyncio.timeout(WAIT_SECONDS):
        await server.task


@pytest.fixture
async def server(start_server: Callable[..., Any]) -> RunningServer:
    return await start_server()


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    return until


if __name__ == "__main__":
    only_config = NeuroscopeConfig(model_id="demo", port=0, features_port=0)
    both_ports, only_engine = bind_ports(only_config), FakeEngine()
    only_engine.permits = None if sys.argv[1:] == ["endless"] else 2
    only_state = ServerState(only_config, only_engine, FakeTokenizer(), FakeLabels())
    run(
        only_config,
        lambda: only_state,
        both_ports,
        lambda: print(both_ports.chat.url, both_ports.features.url, flush=True),
    )
