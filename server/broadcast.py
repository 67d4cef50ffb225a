"""Feature events to every reader of the features stream. Publishing never waits: who lags loses the oldest."""

import itertools
import logging

import msgspec

from neuroscope_jax.features.events import EVENT_NAMES, FeatureEvent, GenerationComplete
from server import sse
from server.history import Event, History
from server.metrics import Metrics
from server.subscriber import Follower, Subscriber

logger = logging.getLogger(__name__)

HISTORY_BYTES = 16 * 2**20


class Broadcast:
    """The history and all of its readers. Belongs to the event loop: call it from there only."""

    def __init__(self, buffer_size: int, metrics: Metrics, first_id: int | None = None) -> None:
        self.history = History(buffer_size, HISTORY_BYTES, first_id)
        self._metrics = metrics
        self._subscribers: set[Subscriber] = set()
        self._numbers = itertools.count(1)
        self._closed = False
        metrics.watch_subscribers(lambda: self.subscribers)

    @property
    def subscribers(self) -> int:
        """How many read."""
        return len(self._subscribers)

    def subscribe(self, completion_id: str | None = None, last_id: int | None = None) -> Subscriber:
        """A reader of everything from now on, or of one completion from its beginning, or from where it was before.

        Ended at once where the server is stopping.
        """
        number = next(self._numbers)
        if completion_id is None:
            subscriber = Subscriber(number, self.history)
        else:
            subscriber = Follower(number, self.history, completion_id)
        if last_id is not None:
            subscriber.resume(last_id)
        self._subscribers.add(subscriber)
        if self._closed:
            subscriber.close()
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Forget a reader that is gone."""
        self._subscribers.discard(subscriber)
        self._metrics.events_dropped(subscriber.dropped)

    def publish(self, event: FeatureEvent) -> Event:
        """Encode once, keep, wake every reader."""
        frame = sse.frame(msgspec.json.encode(event), event=EVENT_NAMES[type(event)], event_id=self.history.next_id)
        kept = self.history.append(event.completion_id, frame, isinstance(event, GenerationComplete))
        self._metrics.published(event)
        for subscriber in self._subscribers:
            subscriber.wake()
        return kept

    def close(self) -> None:
        """End every stream; readers that come later are ended at once."""
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.close()
