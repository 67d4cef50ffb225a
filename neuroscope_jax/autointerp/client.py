"""Calls of the Anthropic API: the only module that knows its client library, which takes a second to import."""

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Annotated, Any

import anthropic
import httpx2
import msgspec

from neuroscope_jax.autointerp.pace import Pace
from neuroscope_jax.autointerp.prices import undated
from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.quoting import message as shortened
from neuroscope_jax.autointerp.replies import MOST_TOKENS, Reading, read_body
from neuroscope_jax.autointerp.settings import Settings
from neuroscope_jax.errors import UserError

CONNECT = 10.0  # seconds
QUOTED = 20  # a message with so many characters in a row of a prompt is not shown
PLAIN = ("claude-haiku-4-5",)  # these think only where told to
UNTHINKING = ("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5")  # these think unless told not to
WAITS_LONG = 2  # tries of a call before; after them the client library waits for seconds
SAID_EVERY = 10.0  # seconds at least between two lines about waiting
THINKING_ROOM = 4096  # tokens for what others may think before they answer

logger = logging.getLogger(__name__)
for _name in ("anthropic", "httpx2", "httpcore2"):  # at lower levels they log a line a call, prompts in it
    logging.getLogger(_name).setLevel(logging.WARNING)

ADVICE = {
    401: "the key is not accepted; check ANTHROPIC_API_KEY",
    402: "the account cannot pay for it; see Billing in the Claude console",
    403: "the key may not do this; check its workspace and permissions in the Claude console",
    404: "there is no such model, or the key may not use it; check the model's name and ANTHROPIC_BASE_URL",
    429: "the account's spend limit is reached; raise it in the Claude console",
}


class _Count(msgspec.Struct):
    input_tokens: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class Stop(anthropic.AnthropicError):
    """What no further question may be asked after; a subclass of the library's own so that it passes this unchanged."""

    def as_user_error(self) -> UserError:
        """For a person, who may run the same command again."""
        return UserError(f"{self}. The answers so far are kept: run the same command again to go on from them")


class Client:
    """One connection pool and one pace for all calls of a run; a context.

    `credential` is `api_key` or `auth_token` of the client library.
    """

    def __init__(self, settings: Settings, credential: Mapping[str, str], pace: Pace | None = None) -> None:
        self.settings = settings
        self.pace = pace or Pace(settings.rpm)
        self._secrets = tuple(credential.values())
        self._repeated = 0  # tries that were not a call's first
        self._said = -SAID_EVERY + time.monotonic()  # when waiting was last spoken of
        most = settings.concurrency
        self.api = anthropic.AsyncAnthropic(
            **credential,  # type: ignore[arg-type]
            max_retries=settings.max_retries,
            timeout=httpx2.Timeout(settings.timeout, connect=min(CONNECT, settings.timeout)),
            http_client=anthropic.DefaultAsyncHttpxClient(
                limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most),
                event_hooks={"request": [self._before], "response": [self._after]},
            ),
        )

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.api.close()

    async def ask(self, question: Question) -> Reading:
        """The answer, or why there is none; after a turn of `pace`, so that waiting for it takes none of the patience.

        Raises Stop where no other question would fare better.
        """
        try:
            async with asyncio.timeout(self.settings.patience):
                response = await self.api.messages.with_raw_response.create(**parameters(question, self.settings.model))
                return read_body(response.http_response.content)
        except (TimeoutError, anthropic.APITimeoutError):
            return Reading(failure="timeout")
        except anthropic.APIConnectionError:
            return Reading(failure="no connection")
        except anthropic.APIStatusError as error:
            return Reading(failure=self.told(error, question))

    async def count_tokens(self, question: Question) -> int:
        """Tokens that the model would read. Raises Stop where the API does not tell."""
        asked = parameters(question, self.settings.model)
        asked.pop("max_tokens")
        await self.pace.turn()
        try:
            response = await self.api.messages.with_raw_response.count_tokens(**asked)
            return msgspec.json.decode(response.http_response.content, type=_Count).input_tokens
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Stop(
                f"{self.api.base_url.host} answers, but not as the Anthropic API; check ANTHROPIC_BASE_URL"
            ) from None
        except anthropic.APIStatusError as error:
            raise Stop(f"the prompts' tokens could not be counted: {self.told(error, question)}") from None
        except anthropic.APIConnectionError:
            raise Stop(f"no connection to {self.api.base_url.host}, to count the prompts' tokens") from None

    def told(self, error: anthropic.APIStatusError, question: Question | None = None) -> str:
        """The error in a line, without secrets and prompts. Raises Stop instead where its cause is not the question."""
        told = f"{error.status_code} {self.plain(error.type or 'error')}{self.shown(error.api_message, question)}"
        if error.status_code in (401, 402, 403, 404):
            raise Stop(f"the Anthropic API answered {told}: {ADVICE[error.status_code]}") from None
        return told

    def shown(self, message: str | None, question: Question | None) -> str:
        """A server's message in brackets, without secrets; nothing where it quotes the prompt."""
        message = self.plain(message or "")
        text = " ".join((question.system + " " + question.prompt).split()) if question else ""
        quotes = any(message[i : i + QUOTED] in text for i in range(len(message) - QUOTED + 1))
        return f" ({message})" if message and not quotes else ""

    def plain(self, text: str) -> str:
        """A server's words as a short line, without secrets."""
        text = " ".join(text.split())
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return shortened(text)

    async def _before(self, request: httpx2.Request) -> None:
        """The first try has waited for its turn before its time began to run."""
        tries = int(request.headers.get("x-stainless-retry-count", "0"))
        if tries:
            self._repeated += 1
            if tries >= WAITS_LONG:
                self._say("%d tries of calls were repeated (cut off, not answered, a busy server)", self._repeated)
            await self.pace.turn()

    async def _after(self, response: httpx2.Response) -> None:
        if response.status_code != 429:
            return
        await response.aread()
        if b"spend_limit_reached" in response.content:
            raise Stop(f"the Anthropic API answered 429: {ADVICE[429]}")
        seconds = _seconds(response.headers)
        if seconds > self.settings.patience:
            raise Stop(
                f"the Anthropic API asks to wait {seconds / 60:.0f} minutes before the next request (rate limit)"
            )
        if seconds > SAID_EVERY:
            self._say("the Anthropic API asks to wait %.0f s (rate limit)", seconds)
        self.pace.hold(seconds)

    def _say(self, words: str, figure: float) -> None:
        """A line about waiting, unless there has just been one."""
        if time.monotonic() - self._said >= SAID_EVERY:
            self._said = time.monotonic()
            logger.warning(words + "; still trying", figure)


def parameters(question: Question, model: str) -> dict[str, Any]:
    """The body of a request."""
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": question.max_tokens,
        "messages": [{"role": "user", "content": question.prompt}],
        "output_config": {"format": {"type": "json_schema", "schema": question.schema}},
    }
    if question.system:
        body["system"] = question.system
    if undated(model) in UNTHINKING:
        body["thinking"] = {"type": "disabled"}
    elif undated(model) not in PLAIN:
        body["max_tokens"] += THINKING_ROOM
    return body


def _seconds(headers: httpx2.Headers) -> float:
    """What retry-after asks for, in milliseconds or seconds; 0 where it names no number."""
    try:
        if "retry-after-ms" in headers:
            asked = float(headers["retry-after-ms"]) / 1000
        else:
            asked = float(headers.get("retry-after", 0))
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(asked) else asked
