"""The queue before the device: bounded, fair between clients, and a request can leave it early."""

import collections
import threading
from collections.abc import Callable

from neuroscope_jax.engine.requests import Deliver, GenerationRequest, QueueFull


class Job:
    """A submitted request on its way through the queue and the engine thread."""

    def __init__(self, request: GenerationRequest, deliver: Deliver, leave: "Callable[[Job], None]") -> None:
        self.request = request
        self.deliver = deliver
        self._leave = leave
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Stop at the next token if running, at once if queued."""
        self._cancelled.set()
        self._leave(self)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked it to stop."""
        return self._cancelled.is_set()


class WaitingLine:
    """At most `size` jobs. Clients take turns; the jobs of one are in order of arrival. Safe from any thread."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lines: dict[str, collections.deque[Job]] = {}  # of each client that waits, the next one's first
        self._changed = threading.Condition()
        self._closed = False

    def put(self, job: Job) -> None:
        """Join at the end of its client's line.

        Raises QueueFull where the line is closed, or where as many wait as may and this is not a further run.
        """
        with self._changed:
            if self._closed or (self._waiting() >= self._size and not job.request.continues):
                raise QueueFull(
                    "the engine is closed" if self._closed else f"{self._size} requests are waiting already"
                )
            self._lines.setdefault(job.request.client, collections.deque()).append(job)
            self._changed.notify()

    def take(self) -> Job | None:
        """The first job of the client whose turn it is, waited for; None once the line is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closed)
            if not self._lines:
                return None
            client = next(iter(self._lines))
            line = self._lines.pop(client)
            job = line.popleft()
            if line:
                self._lines[client] = line  # behind everybody else
            return job

    def remove(self, job: Job) -> bool:
        """Leave early. False where the job is not in line (any more)."""
        with self._changed:
            line = self._lines.get(job.request.client)
            if line is None or job not in line:
                return False
            line.remove(job)
            if not line:
                del self._lines[job.request.client]
            return True

    def close(self) -> list[Job]:
        """Let nobody in any more; the jobs that were still waiting."""
        with self._changed:
            self._closed = True
            left = [job for line in self._lines.values() for job in line]
            self._lines.clear()
            self._changed.notify_all()
            return left

    def _waiting(self) -> int:
        return sum(map(len, self._lines.values()))
