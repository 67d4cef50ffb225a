"""A server in a thread: the real tokenizer code over a hand-made vocabulary, an engine that follows a script."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import openai
from tokenizers import AddedToken, Tokenizer

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.models.chat import ChatTokenizer
from server.app import serve
from server.ports import bind_ports
from server.state import ServerState
from tests.api.case import Case
from tests.models.conftest import write_tokenizer
from tests.server.conftest import STOP, FakeEngine, FakeLabels

CONTEXT = 256
WORDS = ["cd", "ef", "bcdef", " leading", "  two", "\n\n", "\t", " ok", "ZZ"]  # tokens, beside the single characters


class ScriptedEngine(FakeEngine):
    """Answers "ok" unless a case says what."""

    context_length = CONTEXT


class CaseServer:
    """Both ports, and clients of two kinds."""

    def __init__(self, state: ServerState, engine: ScriptedEngine, chat_url: str, features_url: str) -> None:
        self.state, self.engine = state, engine
        self.urls = {"chat": chat_url, "features": features_url}
        self.http = httpx.Client(timeout=20)
        self.openai = openai.OpenAI(base_url=f"{chat_url}/v1", api_key="any", max_retries=0, timeout=20)

    def set(self, case: Case) -> None:
        """Make the engine do what the case says, and forget what it did."""
        self.engine.script = self.token_ids(["o", "k", "<stop>"] if case.script is None else case.script)
        self.engine.fail_at = case.fail_at
        self.engine.generations.clear()

    def token_ids(self, script: Sequence[str | int]) -> list[int]:
        """A byte by its number, a token by its text."""
        tokenizer: Any = self.state.tokenizer
        return [
            6 + piece if isinstance(piece, int) else STOP if piece == "<stop>" else tokenizer.single_token(piece)
            for piece in script
        ]


@contextlib.contextmanager
def serving(folder: Path, fields: dict[str, Any] | None = None, **tokenizer_config: Any) -> Iterator[CaseServer]:
    """A running server; `fields` are its config's, `tokenizer_config` changes its tokenizer_config.json."""
    config = NeuroscopeConfig(
        model_id="demo", model_aliases=("gpt-4o-mini",), port=0, features_port=0, **(fields or {})
    )
    engine, ports = ScriptedEngine(), bind_ports(config)
    tokenizer = _tokenizer(folder, **tokenizer_config)
    state = ServerState(config, engine, tokenizer, FakeLabels())
    ready, loops = threading.Event(), []

    async def run() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        await serve(state, ports, stop, ready.set)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(20)
    server = CaseServer(state, engine, ports.chat.url, ports.features.url)
    try:
        yield server
    finally:
        server.http.close()
        server.openai.close()
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        engine.close()


def _tokenizer(folder: Path, **config: Any) -> ChatTokenizer:
    path = write_tokenizer(folder, **config) / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in WORDS])
    tokenizer.save(str(path))
    return ChatTokenizer.load(folder)
