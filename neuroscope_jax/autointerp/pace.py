"""When the next request may go out: so many a minute, evenly spread, and none while the server asks to wait."""

import asyncio
import time
from collections.abc import Awaitable, Callable


class Pace:
    """Turns to send a request; without `rpm` there is one at any time."""

    def __init__(
        self,
        rpm: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._seconds = 60 / rpm if rpm else 0.0
        self._clock, self._sleep = clock, sleep
        self._next = self._held = clock()

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        mine = max(self._next, self._clock())
        self._next = mine + self._seconds
        while (wait := max(mine, self._held) - self._clock()) > 0:
            await self._sleep(wait)

    def hold(self, seconds: float) -> None:
        """Nobody's turn comes for so long: the server's limits are of the account, not of one call."""
        self._held = max(self._held, self._clock() + seconds)
