"""One reader of the features stream: a place in the history, and what the reader missed there.

A reader owns no buffer. Who does not read keeps its place until the history has moved past it, and is then told how
many events are gone; the last event of every answer among them is given all the same, so that nobody waits for it.
"""

import asyncio
import logging

import msgspec

from server import sse
from server.history import Event, History

logger = logging.getLogger(__name__)

CHUNK_BYTES = 65_536  # handed on in one piece; what a reader that stalls holds beside its socket's buffers


class Subscriber:
    """Reads every event from now on. Belongs to the event loop."""

    def __init__(self, number: int, history: History) -> None:
        self.number = number
        self.dropped = 0  # events that the reader was told it lost
        self._history = history
        self._next_id = history.next_id
        self._notices: list[bytes] = []
        self._lags = False
        self._over = False
        self._changed = asyncio.Event()

    def resume(self, last_id: int) -> None:
        """Go on after the last event read on an earlier connection, and say so where that cannot be done."""
        history = self._history
        self._next_id = max(last_id + 1, history.oldest_id)
        if not history.issued(last_id):
            self._next_id = history.oldest_id
            self._notices = [notice("reset", reason="unknown_id", dropped=None)]
        elif last_id + 1 < history.oldest_id:
            self._notices = [notice("reset", reason="too_old", dropped=self._count(history.oldest_id - last_id - 1))]

    def wake(self) -> None:
        """Something was published, or the stream is to end."""
        if self._next_id < self._history.oldest_id and not self._lags:
            self._lags = True
            logger.warning("features reader %d lags: events it has not read are gone", self.number)
        self._changed.set()

    def close(self) -> None:
        """End the reader's stream after what it has still to read."""
        self._over = True
        self._changed.set()

    async def next_frames(self) -> bytes | None:
        """What there is to read, or None at the end. Waits; safe to cancel."""
        while not (frames := self._take()):
            if self._over:
                return None
            self._changed.clear()
            await self._changed.wait()
        return frames

    def _take(self) -> bytes:
        """Up to CHUNK_BYTES and the rest of an event."""
        frames, self._notices = self._notices, []
        if self._next_id < self._history.oldest_id:
            frames += self._past_the_gap()
            self._next_id, self._lags = self._history.oldest_id, False
        size = sum(map(len, frames))
        for event in self._history.since(self._next_id):
            if size >= CHUNK_BYTES:
                break
            self._next_id = event.id + 1
            frames += (new := self._frames(event))
            size += sum(map(len, new))
        return b"".join(frames)

    def _past_the_gap(self) -> list[bytes]:
        """How many events are gone, and the last ones of answers among them."""
        endings = self._history.endings_between(self._next_id, self._history.oldest_id)
        dropped = self._history.oldest_id - self._next_id - len(endings)
        return [*self._lost(dropped), *(event.frame for event in endings)]

    def _frames(self, event: Event) -> list[bytes]:
        return [event.frame]

    def _lost(self, dropped: int) -> list[bytes]:
        """The notice, where there is anything to tell."""
        if not dropped:
            return []
        logger.info("features reader %d lost %d events", self.number, dropped)
        return [notice("events_dropped", dropped=self._count(dropped))]

    def _count(self, dropped: int) -> int:
        self.dropped += dropped
        return dropped


class Follower(Subscriber):
    """Reads the events of one completion, those already published included, and ends with its last."""

    def __init__(self, number: int, history: History, completion_id: str) -> None:
        super().__init__(number, history)
        self._completion_id = completion_id
        self._next_id = history.first_id  # what is gone since is found in the gap
        self._next_number: int | None = 0  # within the completion; None where what was read before is not known

    def resume(self, last_id: int) -> None:
        """Go on after the last event read on an earlier connection, and say so where that cannot be done."""
        last = self._history.get(last_id)
        own = last is not None and last.completion_id == self._completion_id
        self._next_number = last.number + 1 if own and last is not None else None
        if last is not None:
            self._next_id = last_id + 1
        else:
            reason = "too_old" if self._history.issued(last_id) else "unknown_id"
            self._notices = [notice("reset", reason=reason, dropped=None)]

    def _past_the_gap(self) -> list[bytes]:
        ending = self._history.ending(self._completion_id)
        missed = ending is not None and self._next_id <= ending.id < self._history.oldest_id
        return self._frames(ending) if missed and ending is not None else []

    def _frames(self, event: Event) -> list[bytes]:
        if event.completion_id != self._completion_id:
            return []
        lost = 0 if self._next_number is None else event.number - self._next_number
        self._next_number = event.number + 1
        if event is self._history.ending(self._completion_id):
            self._over = True
        return [*self._lost(lost), event.frame]


def notice(name: str, **fields: object) -> bytes:
    """An event about the stream itself. Without an id: it is not part of what is counted."""
    return sse.frame(msgspec.json.encode(fields), event=name)
