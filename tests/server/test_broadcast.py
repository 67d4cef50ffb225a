"""The bounded buffers between generation and the readers of the features stream."""

import asyncio
import json
import logging

from neuroscope_jax.features.events import GenerationComplete
from server.broadcast import Broadcast


def publish(broadcast, *numbers):
    for number in numbers:
        broadcast.publish(GenerationComplete(number, "demo", "c", "stop"))


def parsed(frame):
    fields = dict(line.split(": ", 1) for line in frame.decode().strip().split("\n"))
    return fields["event"], json.loads(fields["data"])


async def read(subscriber, count):
    return [parsed(await subscriber.next_frame()) for _ in range(count)]


def totals(events):
    return [data["total_tokens"] for name, data in events if name == "generation_complete"]


async def test_every_reader_gets_every_event_from_its_start():
    broadcast = Broadcast(8)
    first = broadcast.subscribe()
    publish(broadcast, 1)
    second = broadcast.subscribe()
    publish(broadcast, 2, 3)
    assert totals(await read(first, 3)) == [1, 2, 3]
    assert totals(await read(second, 2)) == [2, 3]


async def test_oldest_are_dropped_counted_and_told_before_the_next_event():
    broadcast = Broadcast(3)
    slow = broadcast.subscribe()
    publish(broadcast, *range(10))
    assert await read(slow, 1) == [("events_dropped", {"dropped": 7})]
    assert totals(await read(slow, 3)) == [7, 8, 9]
    publish(broadcast, 10)
    assert totals(await read(slow, 1)) == [10], "told once"


async def test_a_full_buffer_drops_nothing():
    broadcast = Broadcast(3)
    reader = broadcast.subscribe()
    publish(broadcast, 0, 1, 2)
    assert totals(await read(reader, 3)) == [0, 1, 2]


async def test_one_warning_an_episode(caplog):
    caplog.set_level(logging.WARNING)
    broadcast = Broadcast(2)
    slow = broadcast.subscribe()
    for episodes in (1, 2):
        publish(broadcast, *range(50))
        assert len(caplog.records) == episodes
        await read(slow, 3)


async def test_a_slow_reader_takes_nothing_from_another():
    broadcast = Broadcast(4)
    slow, quick = broadcast.subscribe(), broadcast.subscribe()
    for number in range(100):
        publish(broadcast, number)
        assert totals(await read(quick, 1)) == [number]
    assert (await read(slow, 1))[0] == ("events_dropped", {"dropped": 96})


async def test_a_reader_waits_and_bears_cancelling():
    broadcast = Broadcast(4)
    reader = broadcast.subscribe()
    waiting = asyncio.create_task(reader.next_frame())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    again = asyncio.create_task(reader.next_frame())
    await asyncio.sleep(0)
    publish(broadcast, 1)
    assert parsed(await again)[1]["total_tokens"] == 1


async def test_close_ends_readers_after_what_they_have_to_read():
    broadcast = Broadcast(4)
    reader = broadcast.subscribe()
    publish(broadcast, 1)
    broadcast.close()
    assert totals(await read(reader, 1)) == [1]
    assert await reader.next_frame() is None
    assert await broadcast.subscribe().next_frame() is None


async def test_nothing_is_kept_for_a_reader_that_left():
    broadcast = Broadcast(2)
    gone = broadcast.subscribe()
    broadcast.unsubscribe(gone)
    publish(broadcast, *range(5))
    assert gone.dropped == 0


async def test_ids_count_on_while_nobody_reads():
    broadcast = Broadcast(2)
    publish(broadcast, 1, 2)
    reader = broadcast.subscribe()
    publish(broadcast, 3)
    assert b"id: 3\n" in await reader.next_frame()
