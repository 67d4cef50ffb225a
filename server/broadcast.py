"""Feature events to every reader of the features stream. Publishing never waits: who lags loses the oldest."""

import asyncio
import collections
import itertools
import logging

import msgspec

from neuroscope_jax.features.events import EVENT_NAMES, FeatureEvent
from server import sse

logger = logging.getLogger(__name__)


class Subscriber:
    """One reader: a bounded buffer of encoded events and the count of those it missed."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.dropped = 0  # since the reader was last told
        self._frames: collections.deque[bytes] = collections.deque()
        self._size = size
        self._changed = asyncio.Event()
        self._closed = False

    def push(self, frame: bytes) -> None:
        """Keep one more event, in the place of the oldest where the buffer is full."""
        if len(self._frames) == self._size:
            self._frames.popleft()
            self._count_drop()
        self._frames.append(frame)
        self._changed.set()

    def close(self) -> None:
        """End the reader's stream after what it has still to read."""
        self._closed = True
        self._changed.set()

    async def next_frame(self) -> bytes | None:
        """The next event, a notice of lost events before it, or None at the end. Waits; safe to cancel."""
        while not self._frames and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        if self.dropped:
            return self._notice()
        return self._frames.popleft() if self._frames else None

    def _count_drop(self) -> None:
        if not self.dropped:
            logger.warning(
                "features reader %d lags: its %d events are full, dropping the oldest", self.number, self._size
            )
        self.dropped += 1

    def _notice(self) -> bytes:
        logger.info("features reader %d lost %d events", self.number, self.dropped)
        data = msgspec.json.encode({"dropped": self.dropped})
        self.dropped = 0
        return sse.frame(data, event="events_dropped")


class Broadcast:
    """All readers. Belongs to the event loop: call it from there only."""

    def __init__(self, buffer_size: int) -> None:
        self._buffer_size = buffer_size
        self._subscribers: set[Subscriber] = set()
        self._event_ids = itertools.count(1)
        self._numbers = itertools.count(1)
        self._closed = False

    def subscribe(self) -> Subscriber:
        """A reader that sees every event from now on; ended at once where the server is stopping."""
        subscriber = Subscriber(next(self._numbers), self._buffer_size)
        self._subscribers.add(subscriber)
        if self._closed:
            subscriber.close()
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Forget a reader that is gone."""
        self._subscribers.discard(subscriber)
        if subscriber.dropped:
            logger.info("features reader %d left and lost %d events", subscriber.number, subscriber.dropped)

    def publish(self, event: FeatureEvent) -> None:
        """Encode once, hand to every reader."""
        event_id = next(self._event_ids)
        if not self._subscribers:
            return
        frame = sse.frame(msgspec.json.encode(event), event=EVENT_NAMES[type(event)], event_id=event_id)
        for subscriber in self._subscribers:
            subscriber.push(frame)

    def close(self) -> None:
        """End every stream; readers that come later are ended at once."""
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.close()
