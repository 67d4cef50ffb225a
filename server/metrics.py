"""GET /metrics, on both ports: what the server has done so far, in Prometheus's text format.

Every server counts in a registry of its own.
"""

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from quart import Blueprint, Response

from neuroscope_jax.features.events import FeatureActivation, FeatureEvent, GenerationComplete

PREFIX = "neuroscope"
HTTP_LABELS = ("port", "method", "route", "status")
FIRST_TOKEN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
TOKENS_PER_SECOND = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """What is counted. Safe from any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._responses = self._counter("http_responses", "Answers by port, method, route and status.", HTTP_LABELS)
        self._completions = self._counter("completions", "Answers by what ended them.", ("reason",))
        self._refused = self._counter("queue_refusals", "Requests answered 429 because the queue was full.")
        self._prompt = self._counter("prompt_tokens", "Tokens of the prompts of generations that began.")
        self._generated = self._counter("generated_tokens", "Tokens generated.")
        self._events = self._counter("feature_events", "Events published on the features stream.")
        self._dropped = self._counter("feature_events_dropped", "Events that readers lost, and were told of.")
        self._filtered = self._counter("features_filtered", "Features that were active and left out by the filter.")
        self._first_token = self._histogram(
            "first_token_seconds", "From submission to the first token, waiting included.", FIRST_TOKEN_SECONDS
        )
        self._rate = self._histogram(
            "decode_tokens_per_second", "Of each generation, behind its first token.", TOKENS_PER_SECOND
        )
        self._running = self._gauge("requests_running", "Generations the device works on.")
        self._waiting = self._gauge("requests_waiting", "Generations that wait for the device.")
        self._subscribers = self._gauge("feature_subscribers", "Readers of the features stream.")

    def responded(self, port: str, method: str, route: str, status: int) -> None:
        """An answer's last byte has gone out, or its client has left (status 499 where none had been sent)."""
        self._responses.labels(port, method, route, str(status)).inc()

    def published(self, event: FeatureEvent) -> None:
        """An event has gone to the readers."""
        self._events.inc()
        if isinstance(event, FeatureActivation):
            self._filtered.inc(event.filtered_count)
        elif isinstance(event, GenerationComplete):
            self._completions.labels(event.reason).inc()

    def events_dropped(self, count: int) -> None:
        """A reader has lost this many."""
        self._dropped.inc(count)

    def queue_refused(self) -> None:
        """A request found the queue full."""
        self._refused.inc()

    def first_token(self, prompt_tokens: int, seconds: float) -> None:
        """A generation's first token came so long after it was submitted."""
        self._prompt.inc(prompt_tokens)
        self._first_token.observe(seconds)

    def generated(self) -> None:
        """One more token."""
        self._generated.inc()

    def decoded(self, tokens_per_second: float) -> None:
        """A generation is over; how fast its tokens came, from the second one on."""
        self._rate.observe(tokens_per_second)

    def watch_requests(self, running: Callable[[], float], waiting: Callable[[], float]) -> None:
        """Where to look for these two numbers."""
        self._running.set_function(running)
        self._waiting.set_function(waiting)

    def watch_subscribers(self, count: Callable[[], float]) -> None:
        """Where to look for the number of readers."""
        self._subscribers.set_function(count)

    def exposition(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, namespace=PREFIX, registry=self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, namespace=PREFIX, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, namespace=PREFIX, registry=self._registry, buckets=buckets)


def metrics_routes(metrics: Metrics) -> Blueprint:
    """The one route."""
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    async def exposition() -> Response:
        return Response(metrics.exposition(), content_type=CONTENT_TYPE_LATEST)

    return routes
