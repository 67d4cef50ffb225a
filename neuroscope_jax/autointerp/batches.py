"""The same questions through the Message Batches API: half the price, within a day, resumed after a kill."""

import asyncio
import collections
import logging
from collections.abc import Iterable

import msgspec

from neuroscope_jax.autointerp.batch_calls import BatchCalls, Unreachable
from neuroscope_jax.autointerp.batch_state import BatchState, BatchStatus, UnderWay
from neuroscope_jax.autointerp.claude import FEWEST_IN_A_ROW, OnAnswer, require_key
from neuroscope_jax.autointerp.client import Client, Stop, parameters
from neuroscope_jax.autointerp.journal import Journal, checked
from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.replies import Message, Reading, answer_of, by_the_model, read
from neuroscope_jax.autointerp.settings import Settings
from neuroscope_jax.autointerp.spending import Usage, characters, counted, money, rough_dollars
from neuroscope_jax.errors import UserError

logger = logging.getLogger(__name__)

MOST_QUESTIONS, MOST_CHARACTERS = 20_000, 64_000_000  # of a batch, which is in memory while it is under way
AT_ONCE = 4  # batches under way
POLL = 30.0  # seconds between looks at them
MOST_LOOKS = 120  # in a row that fail: an hour
PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a batch is sent once more, twice as many each time


class _Error(msgspec.Struct):
    type: str = "error"
    message: str = ""


class _ErrorBody(msgspec.Struct):
    error: _Error


class _Result(msgspec.Struct):
    type: str
    message: Message | None = None
    error: _ErrorBody | None = None


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


def ask(questions: Iterable[Question], settings: Settings, journal: Journal, on_answer: OnAnswer) -> Usage:
    """Like `claude.ask`; answers come as batches end, those of one batch in no order.

    Raises UserError where the API refuses the key, the model or the account, and before a batch that would pass the
    budget. A run that ends early leaves its batches at work: the next one collects them.
    """
    run = _Run(settings, journal, on_answer)
    try:
        asyncio.run(run.all(questions))
    except Stop as stop:
        raise stop.as_user_error() from None
    except Unreachable as error:
        raise UserError(f"{error}. Nothing is lost: run the same command again to go on") from None
    return run.usage


class _Run:
    """Questions gathered into batches, batches sent, results joined by their key."""

    def __init__(self, settings: Settings, journal: Journal, on_answer: OnAnswer) -> None:
        self.usage = Usage()
        self._settings, self._journal, self._on_answer = settings, journal, on_answer
        self._prices = settings.prices.halved()
        self._state = BatchState(journal.path)
        self._gathered: dict[str, Question] = {}  # for the next batch, by key
        self._characters = 0
        # All that is gathered or under way; no question where an earlier run sent it and this one has not come to it.
        self._waiting: dict[str, list[Question]] = {key: [] for batch in self._state.under_way for key in batch.asked}

    async def all(self, questions: Iterable[Question]) -> None:
        async with Client(self._settings, require_key()) as client:
            self._client, self._calls = client, BatchCalls(client)
            await self._find_unnamed()
            for question in questions:
                await self._take(question)
            await self._send()
            while self._state.under_way:
                await self._collect_one()

    async def _find_unnamed(self) -> None:
        """Batches that an earlier run was about to send when it ended: were they created?"""
        for batch in [batch for batch in self._state.under_way if not batch.id]:
            if found := await self._found(batch):
                self._state.named(batch, found.id)
            else:
                self._state.done(batch)
                for key in batch.asked:
                    del self._waiting[key]

    async def _take(self, question: Question) -> None:
        key = question.key(self._settings.model)
        if key in self._waiting:
            self._waiting[key].append(question)
        elif answer := self._journal.find(key, question):
            self.usage.known += 1
            self.usage.note(answer)
            self._on_answer(question, answer)
        else:
            self._waiting[key] = [question]
            self._gathered[key] = question
            self._characters += characters(question)
            if len(self._gathered) == MOST_QUESTIONS or self._characters > MOST_CHARACTERS:
                await self._send()

    async def _send(self) -> None:
        if not self._gathered:
            return
        dollars = sum(rough_dollars(question, self._prices) for question in self._gathered.values())
        while self._state.under_way and (len(self._state.under_way) >= AT_ONCE or self._passes_budget(dollars)):
            await self._collect_one()
        if self._passes_budget(dollars):
            raise UserError(
                f"--max-usd {self._settings.max_usd:g}: {money(self._spent)} are spent, and the next batch, "
                f"{counted(len(self._gathered), 'question')}, costs about {money(dollars)}. The answers so far are "
                "kept: run the same command again with a higher --max-usd, or with fewer --features"
            )
        await self._create(self._state.add(self._gathered, dollars))
        self._gathered, self._characters = {}, 0

    @property
    def _spent(self) -> float:
        return self._settings.spent + self.usage.dollars

    def _passes_budget(self, dollars: float) -> bool:
        under_way = sum(batch.dollars for batch in self._state.under_way)
        limit = self._settings.max_usd
        return limit is not None and self._spent + under_way + dollars > limit

    async def _create(self, batch: UnderWay) -> None:
        model = self._settings.model
        requests = [{"custom_id": key, "params": parameters(q, model)} for key, q in self._gathered.items()]
        created: BatchStatus | None = None
        for attempt in range(self._settings.max_retries + 1):
            try:
                created = await self._found(batch) if attempt else None
                created = created or await self._calls.create(requests)
                return self._state.named(batch, created.id)
            except Stop:
                self._state.done(batch)
                raise
            except Unreachable as error:
                logger.warning("a message batch could not be sent: %s", error)
                await asyncio.sleep(min(PAUSE * 2**attempt, LONGEST_PAUSE))
        raise Unreachable("the Anthropic API takes no message batch now")

    async def _found(self, batch: UnderWay) -> BatchStatus | None:
        return next((b for b in await self._calls.latest() if batch.is_this(b) and self._state.is_new(b)), None)

    async def _collect_one(self) -> None:
        """Wait for a batch to end and deliver its answers. Raises Unreachable after MOST_LOOKS that fail in a row."""
        failed: collections.Counter[str] = collections.Counter()
        while True:
            for batch in self._state.under_way:
                try:
                    if (await self._calls.status(str(batch.id))).ended:
                        return await self._collect(batch)
                    failed.pop(str(batch.id), None)
                except Unreachable as error:
                    failed[str(batch.id)] += 1
                    if failed[str(batch.id)] == MOST_LOOKS:
                        raise Unreachable(f"message batch {batch.id}: {error}") from None
                    logger.warning("message batch %s: %s; trying again", batch.id, error)
            await asyncio.sleep(POLL)

    async def _collect(self, batch: UnderWay) -> None:
        left = batch.asked.keys() & self._waiting.keys()  # some may be delivered already, if the connection broke
        answered, first = 0, None  # and the first failure
        async for text in self._calls.results(str(batch.id)):
            line = _decoded(text)
            if line.custom_id in left:
                left.remove(line.custom_id)
                reading = self._reading(line)
                first = first or reading.failure
                answered += self._settle(batch, line.custom_id, reading)
        for key in left:
            self._settle(batch, key, Reading(failure="no result"))
        self._state.done(batch)
        logger.info("message batch %s: %d of %d questions answered", batch.id, answered, len(batch.asked))
        if not answered and len(batch.asked) >= FEWEST_IN_A_ROW:
            kinds = ", ".join(self.usage.failures)
            raise UserError(
                f"message batch {batch.id}: none of its {len(batch.asked):,} questions got an answer: {kinds}; "
                f"the first failure: {first or 'no result'}"
            )

    def _reading(self, line: _Line) -> Reading:
        result = line.result
        if result.message:
            return read(result.message)
        if not result.error:
            return Reading(failure=self._client.plain(result.type))
        question = next(iter(self._waiting[line.custom_id]), None)
        shown = self._client.shown(result.error.error.message, question) if question else ""
        return Reading(failure=f"{self._client.plain(f'{result.type} {result.error.error.type}')}{shown}")

    def _settle(self, batch: UnderWay, key: str, reading: Reading) -> bool:
        """Keep an answer and deliver it; whether the model gave it."""
        answer = answer_of(key, *batch.asked[key], reading)
        asked = self._waiting[key]  # nobody, where the batch is a killed run's and this run asks for less
        if not (self._journal.find(key, asked[0]) if asked else key in self._journal):
            self._journal.add(answer)
            if by_the_model(answer.failure):
                self.usage.pay(answer, self._prices)
        for question in self._waiting.pop(key):
            delivered = checked(answer, question)
            self.usage.note(delivered)
            self._on_answer(question, delivered)
        return by_the_model(answer.failure)


def _decoded(text: str) -> _Line:
    try:
        return msgspec.json.decode(text, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreachable("the results cannot be read: a line is not a result") from None
