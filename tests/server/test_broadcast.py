"""The bounded history between generation and the readers of the features stream, and what readers find in it."""

import asyncio
import json
import logging

import pytest

from neuroscope_jax.features.events import FeatureActivation, GenerationComplete
from server import history as history_module
from server.broadcast import Broadcast
from server.history import History
from server.metrics import Metrics
from server.subscriber import CHUNK_BYTES

FIRST = 1000


def broadcast_of(size):
    return Broadcast(size, Metrics(), FIRST)


def publish(broadcast, *tokens, completion="c"):
    for token in tokens:
        broadcast.publish(FeatureActivation(token, "t", 3, [], 0, completion, token, "s", -1.0))


def end(broadcast, completion="c"):
    broadcast.publish(GenerationComplete(1, "demo", completion, "stop"))


def parsed(frames):
    """(event, id, data) of each frame."""
    found = []
    for frame in frames.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.split("\n"))
        found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


async def read(subscriber):
    """What there is to read now; None at the end."""
    frames = await subscriber.next_frames()
    return None if frames is None else parsed(frames)


def tokens(events):
    return [data["token_index"] for name, _, data in events if name == "feature_activation"]


def told(events):
    return [(name, data) for name, _, data in events if name in ("events_dropped", "reset")]


async def test_every_reader_gets_every_event_from_its_start():
    broadcast = broadcast_of(8)
    first = broadcast.subscribe()
    publish(broadcast, 1)
    second = broadcast.subscribe()
    publish(broadcast, 2, 3)
    assert tokens(await read(first)) == [1, 2, 3]
    assert tokens(await read(second)) == [2, 3]


async def test_oldest_are_dropped_counted_and_told_before_the_next_event():
    broadcast = broadcast_of(3)
    slow = broadcast.subscribe()
    publish(broadcast, *range(10))
    events = await read(slow)
    assert events[0] == ("events_dropped", None, {"dropped": 7})
    assert tokens(events) == [7, 8, 9]
    publish(broadcast, 10)
    assert told(await read(slow)) == [], "told once"


async def test_a_full_buffer_drops_nothing():
    broadcast = broadcast_of(3)
    reader = broadcast.subscribe()
    publish(broadcast, 0, 1, 2)
    events = await read(reader)
    assert (tokens(events), told(events)) == ([0, 1, 2], [])


async def test_the_end_of_an_answer_reaches_who_lost_the_rest_of_it():
    broadcast = broadcast_of(3)
    slow, follower = broadcast.subscribe(), broadcast.subscribe("a")
    publish(broadcast, *range(5), completion="a")
    end(broadcast, "a")
    publish(broadcast, *range(6), completion="b")
    events = await read(slow)
    assert [name for name, _, _ in events[:2]] == ["events_dropped", "generation_complete"]
    assert (events[0][2], events[1][1]) == ({"dropped": 8}, str(FIRST + 5))
    assert tokens(events) == [3, 4, 5]
    assert [(name, data.get("dropped")) for name, _, data in await read(follower)] == [
        ("events_dropped", 5),
        ("generation_complete", None),
    ]
    assert await read(follower) is None
    end(broadcast, "b")
    assert tokens(await read(broadcast.subscribe("b"))) == [4, 5], "what is left, with what is lost before it"


async def test_bytes_bound_the_history_too():
    kept = History(max_events=1000, max_bytes=100, first_id=FIRST)
    for _ in range(10):
        kept.append("c", b"x" * 30, ends=False)
    assert [event.id for event in kept.since(0)] == [FIRST + 7, FIRST + 8, FIRST + 9]
    kept.append("c", b"x" * 500, ends=False)
    assert [len(event.frame) for event in kept.since(0)] == [500], "one event is always kept"


async def test_endings_are_bounded(monkeypatch):
    monkeypatch.setattr(history_module, "ENDINGS_KEPT", 2)
    kept = History(max_events=1, max_bytes=100, first_id=FIRST)
    for name in "abcd":
        kept.append(name, b"x", ends=True)
    assert [kept.knows(name) for name in "abcd"] == [False, False, True, True]


async def test_a_long_backlog_comes_in_pieces():
    broadcast = broadcast_of(5000)
    reader = broadcast.subscribe()
    publish(broadcast, *range(2000))
    pieces = []
    while sum(map(len, pieces)) < 2000:
        frames = await reader.next_frames()
        assert len(frames) < CHUNK_BYTES + 1000
        pieces.append(tokens(parsed(frames)))
    assert sum(pieces, []) == list(range(2000))
    assert len(pieces) > 2


async def test_one_warning_an_episode(caplog):
    caplog.set_level(logging.WARNING)
    broadcast = broadcast_of(2)
    slow = broadcast.subscribe()
    for episodes in (1, 2):
        publish(broadcast, *range(50))
        assert len(caplog.records) == episodes
        await read(slow)


async def test_a_slow_reader_takes_nothing_from_another():
    broadcast = broadcast_of(4)
    slow, quick = broadcast.subscribe(), broadcast.subscribe()
    for number in range(100):
        publish(broadcast, number)
        assert tokens(await read(quick)) == [number]
    assert told(await read(slow)) == [("events_dropped", {"dropped": 96})]


async def test_a_reader_waits_and_bears_cancelling():
    broadcast = broadcast_of(4)
    reader = broadcast.subscribe()
    waiting = asyncio.create_task(reader.next_frames())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    again = asyncio.create_task(reader.next_frames())
    await asyncio.sleep(0)
    publish(broadcast, 1)
    assert tokens(parsed(await again)) == [1]


async def test_close_ends_readers_after_what_they_have_to_read():
    broadcast = broadcast_of(4)
    reader = broadcast.subscribe()
    publish(broadcast, 1)
    broadcast.close()
    assert tokens(await read(reader)) == [1]
    assert await reader.next_frames() is None
    assert await broadcast.subscribe().next_frames() is None


async def test_drops_are_counted_when_the_reader_leaves():
    metrics = Metrics()
    broadcast = Broadcast(2, metrics, FIRST)
    reader = broadcast.subscribe()
    publish(broadcast, *range(5))
    await read(reader)
    assert b"neuroscope_feature_subscribers 1.0" in metrics.exposition()
    broadcast.unsubscribe(reader)
    assert b"neuroscope_feature_events_dropped_total 3.0" in metrics.exposition()
    assert b"neuroscope_feature_subscribers 0.0" in metrics.exposition()


async def test_resuming_repeats_nothing_and_loses_nothing():
    broadcast = broadcast_of(10)
    publish(broadcast, *range(8))
    events = await read(broadcast.subscribe(last_id=FIRST + 3))
    assert (tokens(events), told(events)) == ([4, 5, 6, 7], [])
    caught_up = broadcast.subscribe(last_id=FIRST + 7)
    publish(broadcast, 8)
    assert tokens(await read(caught_up)) == [8]


@pytest.mark.parametrize(
    ("last_id", "said"),
    [
        (FIRST + 1, {"reason": "too_old", "dropped": 5}),
        (FIRST - 1, {"reason": "unknown_id", "dropped": None}),
        (FIRST + 10, {"reason": "unknown_id", "dropped": None}),
        (10**17, {"reason": "unknown_id", "dropped": None}),
        (0, {"reason": "unknown_id", "dropped": None}),
    ],
)
async def test_resuming_where_that_cannot_be_done_says_so(last_id, said):
    broadcast = broadcast_of(3)
    publish(broadcast, *range(10))
    events = await read(broadcast.subscribe(last_id=last_id))
    assert events[0] == ("reset", None, said)
    assert tokens(events) == [7, 8, 9]


async def test_following_one_completion():
    broadcast = broadcast_of(50)
    publish(broadcast, 0, 1, completion="a")
    follower = broadcast.subscribe("a")
    publish(broadcast, 0, 1, completion="b")
    publish(broadcast, 2, completion="a")
    end(broadcast, "b")
    end(broadcast, "a")
    publish(broadcast, 0, completion="d")
    events = await read(follower)
    assert tokens(events) == [0, 1, 2], "from its beginning, although it had begun"
    assert (events[-1][0], events[-1][2]["completion_id"], told(events)) == ("generation_complete", "a", [])
    assert await read(follower) is None
    assert tokens(await read(broadcast.subscribe("a", last_id=FIRST + 1))) == [2]


async def test_following_tells_how_many_of_its_own_are_lost():
    broadcast = broadcast_of(4)
    follower = broadcast.subscribe("a")
    for number in range(10):
        publish(broadcast, number, completion="a")
        publish(broadcast, number, completion="b")
    events = await read(follower)
    assert (told(events), tokens(events)) == ([("events_dropped", {"dropped": 8})], [8, 9])
    resumed = await read(broadcast.subscribe("a", last_id=FIRST + 2))
    assert (told(resumed), tokens(resumed)) == ([("reset", {"reason": "too_old", "dropped": None})], [8, 9])


async def test_ids_rise_by_one_whether_or_not_somebody_reads():
    broadcast = broadcast_of(2)
    publish(broadcast, 1, 2)
    reader = broadcast.subscribe()
    publish(broadcast, 3)
    assert [event_id for _, event_id, _ in await read(reader)] == [str(FIRST + 2)]


def test_ids_go_on_rising_over_a_restart():
    assert History(1, 1).first_id > 1.7e15
    assert History(1, 1).first_id < 2**53, "exact in JavaScript"
