"""What a run may still spend: calls in flight count at what they are expected to cost, before they are sent."""

import asyncio

from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.settings import Settings
from neuroscope_jax.autointerp.spending import Usage, money, rough_dollars
from neuroscope_jax.errors import UserError


class Budget:
    """Holds a call back while those in flight might use up what is left.

    The first call may always go: the whole run was estimated before it.
    """

    def __init__(self, settings: Settings, usage: Usage) -> None:
        self._settings, self._usage = settings, usage
        self._calls, self._dollars = 0, 0.0  # in flight
        self._freed = asyncio.Event()

    async def reserve(self, question: Question) -> float:
        """The dollars that a call is expected to cost, once they fit; `release` gives them back.

        Raises UserError where they do not fit with nothing in flight.
        """
        while not self._fits(expected := self._expected(question)):
            if not self._calls:
                raise self._spent()
            self._freed.clear()
            await self._freed.wait()
        self._calls += 1
        self._dollars += expected
        return expected

    def release(self, dollars: float) -> None:
        """A call has ended; what it did cost is in the usage."""
        self._calls -= 1
        self._dollars -= dollars
        self._freed.set()

    def _expected(self, question: Question) -> float:
        usage = self._usage
        return usage.dollars / usage.paid if usage.paid else rough_dollars(question, self._settings.prices)

    def _fits(self, expected: float) -> bool:
        spent = self._settings.spent + self._usage.dollars
        limit = self._settings.max_usd
        if limit is None or (self._calls == 0 and spent == 0):
            return True
        return spent < limit and spent + self._dollars + expected <= limit

    def _spent(self) -> UserError:
        limit, spent = float(self._settings.max_usd or 0), self._settings.spent + self._usage.dollars
        passed = ", more than was expected" if spent > limit else ", and the next call would pass it"
        return UserError(
            f"--max-usd {limit:g} is spent ({money(spent, limit)}{passed}). The answers so far are kept: run the same "
            "command again, which spends as much again at most, or with a higher --max-usd"
        )
