"""How late the event loop wakes while the engine reads a prompt: what other clients feel of one that is busy."""

import asyncio

import numpy as np

from benchmarks.ours import GREEDY
from benchmarks.yardstick_results import Lag
from neuroscope_jax.engine.requests import Engine, Finished, GenerationRequest, Item

PAUSE = 0.005  # seconds that the loop asks to sleep for


def loop_lag(engine: Engine, ids: tuple[int, ...]) -> Lag:
    """Of a loop in this thread, until the first token is there. Raises the error the request ended with."""
    late = np.array(asyncio.run(_late(engine, ids)))
    percentile_99 = float(np.quantile(late, 0.99))
    return Lag(len(ids), late.size, float(np.median(late)), percentile_99, float(late.max()))


async def _late(engine: Engine, ids: tuple[int, ...]) -> list[float]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Finished] = loop.create_future()
    late: list[float] = []

    def deliver(item: Item) -> None:
        if isinstance(item, Finished):
            loop.call_soon_threadsafe(done.set_result, item)

    engine.submit(GenerationRequest(ids, 1, GREEDY), deliver)
    while not done.done():
        due = loop.time() + PAUSE
        await asyncio.sleep(PAUSE)
        late.append(loop.time() - due)
    if (error := done.result().error) is not None:
        raise error
    return late
