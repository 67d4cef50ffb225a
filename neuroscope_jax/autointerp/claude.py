"""Questions to Claude, many at once: answers to disk as they come, and nothing asked that was answered before."""

import asyncio
import os
import typing
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from neuroscope_jax.autointerp.batch_state import BatchState
from neuroscope_jax.autointerp.budget import Budget
from neuroscope_jax.autointerp.client import Client, Stop
from neuroscope_jax.autointerp.journal import Journal, checked
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.replies import answer_of, by_the_model
from neuroscope_jax.autointerp.settings import Settings
from neuroscope_jax.autointerp.spending import Usage
from neuroscope_jax.errors import UserError

KEY_VARIABLES = {"api_key": "ANTHROPIC_API_KEY", "auth_token": "ANTHROPIC_AUTH_TOKEN"}
FEWEST_IN_A_ROW = (
    20  # failures on the way to the model after which a run gives up, and at least as many as are in flight
)

T = TypeVar("T")
OnAnswer = Callable[[Question, Answer], None]


def require_key() -> dict[str, str]:
    """The key from the environment, by its name in the client library. Raises UserError where there is none."""
    for name, variable in KEY_VARIABLES.items():
        key = os.environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise UserError(f"{variable}: holds spaces or characters that no key has; copy the key again")
        if key:
            return {name: key}
    raise UserError(
        "ANTHROPIC_API_KEY is not set: Claude writes the labels, and asks for a key from https://platform.claude.com. "
        "Set it with `export ANTHROPIC_API_KEY=…`; --dry-run shows without one what a run would ask and cost"
    )


def ask(questions: Iterable[Question], settings: Settings, journal: Journal, on_answer: OnAnswer) -> Usage:
    """Put the questions, taken from the iterable as they can be sent, and deliver each one's answer or failure.

    At most `settings.concurrency` are in flight. Raises UserError, after those in flight are in the journal, where the
    API refuses the key, the model or the account, where it cannot be reached, and for the budget.
    """
    run = _Run(questions, settings, journal, on_answer)
    asyncio.run(run.all())
    return run.usage


def count_tokens(questions: Sequence[Question], settings: Settings) -> list[int]:
    """Tokens that the model would read for each, counted by the API at no cost. Raises UserError where it cannot."""

    async def count() -> list[int]:
        async with Client(settings, require_key()) as client:
            return [await client.count_tokens(question) for question in questions]

    try:
        return asyncio.run(count())
    except Stop as stop:
        raise stop.as_user_error() from None


class _Run:
    """Workers that share an iterator: each takes the next question when it is done with its last."""

    def __init__(
        self, questions: Iterable[Question], settings: Settings, journal: Journal, on_answer: OnAnswer
    ) -> None:
        self.usage = Usage()
        self._waiting: set[asyncio.Task[None]] = set()  # for their turn, with nothing sent
        self._questions: Iterator[Question] = iter(questions)
        self._settings, self._journal, self._on_answer = settings, journal, on_answer
        self._budget = Budget(settings, self.usage)
        self._in_flight: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._batches = BatchState(journal.path)
        self._in_batches = self._batches.keys()
        self._unanswered = 0  # questions in a row that did not reach the model
        self._end: Exception | None = None  # why no further question may be asked

    async def all(self) -> None:
        async with Client(self._settings, require_key()) as client:
            workers = {asyncio.create_task(self._work(client)) for _ in range(self._settings.concurrency)}
            try:
                await self._finished(workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        if self._end:
            raise self._end

    async def _finished(self, workers: set[asyncio.Task[None]]) -> None:
        """Until all are done; where the run has to end, what is in flight has the time of one try left."""
        left = workers
        while left and not self._end:
            _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for worker in list(self._waiting):
            worker.cancel()
        if left:
            await asyncio.wait(left, timeout=self._settings.timeout)

    async def _work(self, client: Client) -> None:
        try:
            for question in self._questions:
                if self._end:
                    return
                await self._deliver(client, question)
        except Stop as stop:
            self._end = self._end or stop.as_user_error()
        except Exception as error:
            self._end = self._end or error

    async def _deliver(self, client: Client, question: Question) -> None:
        key = question.key(self._settings.model)
        async with self._in_flight.setdefault(key, asyncio.Lock()):  # an equal question waits for the first's answer
            answer = self._journal.find(key, question)
            if answer:
                self.usage.known += 1
                await asyncio.sleep(0)
            else:
                answer = await self._pay(client, question, key)
        self.usage.note(answer)
        self._on_answer(question, answer)

    async def _pay(self, client: Client, question: Question, key: str) -> Answer:
        self._check_batches(key)
        dollars = await self._turn(self._budget.reserve(question))
        try:
            await self._turn(client.pace.turn())
            return await self._asked(client, question, key)
        finally:
            self._budget.release(dollars)

    async def _asked(self, client: Client, question: Question, key: str) -> Answer:
        answer = answer_of(key, question.feature, question.part, await client.ask(question))
        self._journal.add(answer)
        if by_the_model(answer.failure):
            self._unanswered = 0
            self.usage.pay(answer, self._settings.prices)
        else:
            self._unanswered += 1
            self._check_reached(str(answer.failure))
        return checked(answer, question)

    async def _turn(self, turn: Coroutine[Any, Any, T]) -> T:
        """Wait with nothing sent."""
        worker = typing.cast("asyncio.Task[None]", asyncio.current_task())
        self._waiting.add(worker)
        try:
            return await turn
        finally:
            self._waiting.remove(worker)

    def _check_batches(self, key: str) -> None:
        if key in self._in_batches:
            raise UserError(
                "some of these questions are in a message batch that is under way and paid for: run the same command "
                f"with --batch to collect it, or remove {self._batches.path} to forget it"
            )

    def _check_reached(self, failure: str) -> None:
        if self._unanswered >= max(FEWEST_IN_A_ROW, self._settings.concurrency):
            raise UserError(
                f"{self._unanswered} questions in a row got no answer from the Anthropic API; the last one's failure: "
                f"{failure}. The answers so far are kept: run the same command again to go on from them"
            )
