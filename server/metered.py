"""An engine that is watched: how many generations are in it, how soon their tokens come."""

import threading
import time
from collections.abc import Callable

from neuroscope_jax.engine.requests import (
    Deliver,
    Engine,
    Finished,
    GeneratedToken,
    Generation,
    GenerationRequest,
    Item,
    QueueFull,
)
from server.metrics import Metrics


class MeteredEngine:
    """Passes everything on, and satisfies engine.requests.Engine itself."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine, self._metrics = engine, metrics
        self._in_flight = 0
        self._lock = threading.Lock()
        metrics.watch_requests(lambda: self.running, lambda: self.waiting)

    @property
    def context_length(self) -> int:
        """Prompt and answer together, in tokens."""
        return self._engine.context_length

    @property
    def alive(self) -> bool:
        """False once the engine thread has died."""
        return self._engine.alive

    @property
    def running(self) -> int:
        """Generations on the device: it does one at a time."""
        return min(self._in_flight, 1)

    @property
    def waiting(self) -> int:
        """Generations in the queue."""
        return max(self._in_flight - 1, 0)

    def submit(self, request: GenerationRequest, deliver: Deliver) -> Generation:
        """Queue a request; see engine.requests.Engine."""
        self._count(1)
        try:
            return self._engine.submit(request, _Meter(request, deliver, self._metrics, lambda: self._count(-1)))
        except BaseException as error:
            self._count(-1)
            if isinstance(error, QueueFull):
                self._metrics.queue_refused()
            raise

    def close(self) -> None:
        """End running and queued generations as cancelled and join the thread."""
        self._engine.close()

    def _count(self, change: int) -> None:
        with self._lock:
            self._in_flight += change


class _Meter:
    """Stands between the engine and the receiver of one generation."""

    def __init__(
        self, request: GenerationRequest, deliver: Deliver, metrics: Metrics, leave: Callable[[], None]
    ) -> None:
        self._request, self._deliver, self._metrics, self._leave = request, deliver, metrics, leave
        self._tokens = 0
        self._submitted = time.monotonic()  # never the wall clock, which can jump
        self._first = self._submitted

    def __call__(self, item: Item) -> None:
        if isinstance(item, Finished):
            self._end()
        elif isinstance(item, GeneratedToken):
            self._count_token()
        self._deliver(item)

    def _count_token(self) -> None:
        if not self._tokens:
            self._first = time.monotonic()
            self._metrics.first_token(len(self._request.prompt_ids), self._first - self._submitted)
        self._tokens += 1
        self._metrics.generated()

    def _end(self) -> None:
        self._leave()
        seconds = time.monotonic() - self._first
        if self._tokens > 1 and seconds > 0:
            self._metrics.decoded((self._tokens - 1) / seconds)
