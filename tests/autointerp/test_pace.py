"""Turns, by a clock that only moves when somebody sleeps."""

import asyncio
import heapq

from neuroscope_jax.autointerp.pace import Pace


class Clock:
    """Sleepers wake in the order of their times."""

    def __init__(self) -> None:
        self.now = 100.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        wake = asyncio.Event()
        heapq.heappush(self._sleepers, (self.now + seconds, id(wake), wake))
        await wake.wait()

    async def run(self) -> None:
        """Until nobody sleeps any more."""
        await _settled()
        while self._sleepers:
            self.now, _, wake = heapq.heappop(self._sleepers)
            wake.set()
            await _settled()


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def turns(pace: Pace, clock: Clock, count: int) -> list[float]:
    """When each of so many who ask at once has its turn."""
    times: list[float] = []

    async def wait() -> None:
        await pace.turn()
        times.append(clock.now - 100)

    waiting = [asyncio.create_task(wait()) for _ in range(count)]
    await clock.run()
    await asyncio.gather(*waiting)
    return times


async def test_requests_are_spread_over_the_minute() -> None:
    clock = Clock()
    assert await turns(Pace(120, clock, clock.sleep), clock, 5) == [0, 0.5, 1, 1.5, 2]


async def test_time_that_nobody_used_is_not_caught_up_with() -> None:
    clock = Clock()
    pace = Pace(60, clock, clock.sleep)
    await turns(pace, clock, 1)
    clock.now += 30
    assert await turns(pace, clock, 3) == [30, 31, 32]


async def test_without_a_cap_nobody_waits() -> None:
    clock = Clock()
    assert await turns(Pace(None, clock, clock.sleep), clock, 1000) == [0] * 1000


async def test_all_wait_while_the_server_asks_to() -> None:
    clock = Clock()
    pace = Pace(60, clock, clock.sleep)
    pace.hold(20)
    pace.hold(5)
    assert await turns(pace, clock, 2) == [20, 20]
    assert await turns(pace, clock, 1) == [20]


async def test_those_who_wait_already_are_held_too() -> None:
    clock = Clock()
    pace = Pace(60, clock, clock.sleep)
    waiting = asyncio.create_task(turns(pace, clock, 3))
    await _settled()
    pace.hold(10)
    assert await waiting == [0, 10, 10]
