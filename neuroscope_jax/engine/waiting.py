"""The queue before the device: bounded, first come first served, and a request can leave it early."""

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
    """At most `size` jobs in order of arrival. Safe from any thread."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: collections.deque[Job] = collections.deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, job: Job) -> None:
        """Join at the end. Raises QueueFull where as many wait as may, or where the line is closed."""
        with self._changed:
            if self._closed or len(self._jobs) >= self._size:
                raise QueueFull(
                    "the engine is closed" if self._closed else f"{self._size} requests are waiting already"
                )
            self._jobs.append(job)
            self._changed.notify()

    def take(self) -> Job | None:
        """The first in line, waited for; None once the line is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            return self._jobs.popleft() if self._jobs else None

    def remove(self, job: Job) -> bool:
        """Leave early. False where the job is not in line (any more)."""
        with self._changed:
            if job not in self._jobs:
                return False
            self._jobs.remove(job)
            return True

    def close(self) -> list[Job]:
        """Let nobody in any more; the jobs that were still waiting."""
        with self._changed:
            self._closed = True
            left = list(self._jobs)
            self._jobs.clear()
            self._changed.notify_all()
            return left
