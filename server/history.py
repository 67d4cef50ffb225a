"""The last events of the features stream, numbered and encoded once; every reader reads from here.

Bounded in events and in bytes: who falls behind what is kept has lost the rest, and can tell how much by the numbers.
"""

import dataclasses
import itertools
import time
from collections.abc import Iterator

ENDINGS_KEPT = 1024  # completions whose last event outlives the others, so that nobody waits for it in vain


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One event as it goes over the wire."""

    id: int
    completion_id: str
    number: int  # 0, 1, 2, … within its completion
    frame: bytes


class History:
    """Events by id; ids rise by one, and go on rising over restarts of the server."""

    def __init__(self, max_events: int, max_bytes: int, first_id: int | None = None) -> None:
        self.first_id = time.time_ns() // 1000 if first_id is None else first_id  # µs: exact in JavaScript too
        self.next_id = self.first_id
        self._max_events, self._max_bytes = max_events, max_bytes
        self._kept: dict[int, Event] = {}
        self._bytes = 0
        self._numbers: dict[str, int] = {}  # of the next event of each completion that is not over
        self._endings: dict[str, Event] = {}

    @property
    def oldest_id(self) -> int:
        """The first id that is still here; `next_id` where there is none."""
        return self.next_id - len(self._kept)

    def append(self, completion_id: str, frame: bytes, ends: bool) -> Event:
        """Keep one more event, which has the id `next_id`, and drop the oldest where it is too much."""
        number = self._numbers.pop(completion_id, 0)
        event = Event(self.next_id, completion_id, number, frame)
        if ends:
            self._keep_ending(event)
        else:
            self._numbers[completion_id] = number + 1
        self._kept[event.id] = event
        self.next_id += 1
        self._bytes += len(frame)
        while len(self._kept) > self._max_events or (self._bytes > self._max_bytes and len(self._kept) > 1):
            self._bytes -= len(self._kept.pop(self.oldest_id).frame)
        return event

    def since(self, event_id: int) -> Iterator[Event]:
        """The events kept from this id on."""
        return (self._kept[i] for i in range(max(event_id, self.oldest_id), self.next_id))

    def issued(self, event_id: int) -> bool:
        """Whether this was ever an event of this run of the server."""
        return self.first_id <= event_id < self.next_id

    def get(self, event_id: int) -> Event | None:
        """One event, where it is still here."""
        return self._kept.get(event_id)

    def ending(self, completion_id: str) -> Event | None:
        """The last event of a completion that is over, for a good while after."""
        return self._endings.get(completion_id)

    def endings_between(self, start: int, end: int) -> list[Event]:
        """The last events of completions with ids from `start` up to, not including, `end`."""
        return [event for event in self._endings.values() if start <= event.id < end]

    def knows(self, completion_id: str) -> bool:
        """Whether a completion has had an event and can still be followed to its end."""
        return completion_id in self._numbers or completion_id in self._endings

    def _keep_ending(self, event: Event) -> None:
        self._endings[event.completion_id] = event
        for oldest in list(itertools.islice(self._endings, max(0, len(self._endings) - ENDINGS_KEPT))):
            del self._endings[oldest]
