"""The clients of the load: each sends one request after the other, of mixed kinds, and looks at what comes back."""

import asyncio
import collections
import itertools
import json
import random
import re
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import httpx

PROMPTS = (
    "What is the capital of France?",
    "Hello, how are you?",
    "Tell me a short story about a dog.",
    "What comes after Monday?",
    "How many legs has a spider?",
    "What is the opposite of hot?",
)
LENGTHS = (1, 8, 24)
PROGRAMS = 8  # as the queue tells them apart
KINDS = ("plain", "streamed", "sampled", "leaves early", "refused", "looks around")
SHARES = (30, 30, 15, 10, 5, 10)
PATIENCE = 300.0
CHAT = "/v1/chat/completions"
METRIC = re.compile(r"^neuroscope_(\w+) (\S+)$", re.MULTILINE)


def _request(prompt: str, tokens: int, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}], "temperature": 0, "max_tokens": tokens, **fields}


async def solo_answers(url: str) -> dict[tuple[str, int], str]:
    """What each greedy request is answered while nobody else asks."""
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        found = {}
        for prompt, tokens in itertools.product(PROMPTS, LENGTHS):
            answer = (await http.post(CHAT, json=_request(prompt, tokens))).raise_for_status().json()
            found[prompt, tokens] = answer["choices"][0]["message"]["content"]
        return found


class Clients:
    """All of them, and what they saw."""

    def __init__(self, url: str, number: int, solo: dict[tuple[str, int], str]) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.first_token_seconds: list[float] = []
        self.stopping = False
        self._url, self._number, self._solo = url, number, solo

    def working(self) -> Iterator[Coroutine[Any, Any, None]]:
        """One endless task for each client."""
        return (self._work(number) for number in range(self._number))

    async def metrics(self) -> dict[str, float]:
        """The server's own figures without labels."""
        async with httpx.AsyncClient(base_url=self._url, timeout=PATIENCE) as http:
            text = (await http.get("/metrics")).raise_for_status().text
        return {name: float(value) for name, value in METRIC.findall(text)}

    async def _work(self, number: int) -> None:
        drawn = random.Random(number)
        headers = {"User-Agent": f"load-{number % PROGRAMS}"}
        async with httpx.AsyncClient(base_url=self._url, timeout=PATIENCE, headers=headers) as http:
            while not self.stopping:
                kind = drawn.choices(KINDS, SHARES)[0]
                try:
                    wait = await self._one(http, kind, drawn)
                except (httpx.HTTPError, OSError) as error:
                    self._failed(f"{kind}: {type(error).__name__}")
                    wait = 1.0
                await asyncio.sleep(wait)

    async def _one(self, http: httpx.AsyncClient, kind: str, drawn: random.Random) -> float:
        """One request; seconds to wait before the next."""
        prompt, tokens = drawn.choice(PROMPTS), drawn.choice(LENGTHS)
        if kind == "refused":
            response = await http.post(CHAT, json=_request(prompt, tokens, top_p=7))
            return self._judge(kind, response.status_code == 400 and response.json()["error"]["param"] == "top_p")
        if kind == "looks around":
            pages = [(await http.get(path)).status_code for path in ("/health", "/v1/models", "/metrics")]
            return self._judge(kind, pages == [200, 200, 200])
        if kind == "plain":
            response = await http.post(CHAT, json=_request(prompt, tokens))
            if response.status_code == 429:
                return self._turned_away(response)
            text = response.json()["choices"][0]["message"]["content"] if response.status_code == 200 else None
            return self._judge(kind, text == self._solo[prompt, tokens])
        fields = {"temperature": 1, "seed": drawn.randrange(99), "logprobs": True} if kind == "sampled" else {}
        request = _request(prompt, tokens, stream=True, **fields)
        return await self._streamed(http, kind, request, None if kind == "sampled" else self._solo[prompt, tokens])

    async def _streamed(
        self, http: httpx.AsyncClient, kind: str, request: dict[str, Any], expected: str | None
    ) -> float:
        began, text, last = time.monotonic(), "", ""
        async with http.stream("POST", CHAT, json=request) as response:
            if response.status_code == 429:
                return self._turned_away(response)
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                last = line.removeprefix("data: ")
                piece = _content(last)
                if piece and not text:
                    self.first_token_seconds.append(time.monotonic() - began)
                    if kind == "leaves early":
                        return self._judge(kind, True)
                text += piece
        return self._judge(kind, last == "[DONE]" and expected in (None, text))

    def _turned_away(self, response: httpx.Response) -> float:
        self.counts["turned away (429)"] += 1
        return float(response.headers["Retry-After"])

    def _judge(self, kind: str, right: bool) -> float:
        if right:
            self.counts[kind] += 1
        else:
            self._failed(f"{kind}: wrong answer")
        return 0.0

    def _failed(self, what: str) -> None:
        if not self.stopping:
            self.counts[f"WRONG {what}"] += 1


def _content(data: str) -> str:
    if data == "[DONE]":
        return ""
    chunk = json.loads(data)
    return "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices", []))
