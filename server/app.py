"""Both apps on one event loop, from the first connection to the last.

`server/__main__.py` binds the ports and says how to load; `run` opens them at once, answers 503 until the ServerState
is there, and returns when SIGINT or SIGTERM came and everything is closed, the engine included.
"""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import hypercorn.asyncio

from neuroscope_jax.config import NeuroscopeConfig
from server import errors
from server.access import is_loopback
from server.apps import create_apps, create_loading_app
from server.front import Front
from server.hypercorn_settings import GRACE_SECONDS, hypercorn_config
from server.metrics import Metrics
from server.ports import Port, Ports
from server.state import ServerState

logger = logging.getLogger(__name__)

CANCEL_ROUNDS = 10


def run(
    config: NeuroscopeConfig, load: Callable[[], ServerState], ports: Ports, ready: Callable[[], None] | None = None
) -> ServerState | None:
    """Open the ports, load, serve until a signal, then close everything; the state, None where it was not there yet.

    `load` runs on a thread of its own, while the ports answer 503; what it raises is raised here. `ready` is called
    once it has returned. A second signal ends the process at once.
    """
    state = None
    try:
        state = asyncio.run(_serve_until_signal(config, load, ports, ready))
        return state
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # asyncio leaves Python's own, which ends in a traceback
        ports.close()
        if state is not None:
            state.engine.close()


async def serve(state: ServerState, ports: Ports, stop: asyncio.Event, ready: Callable[[], None] | None = None) -> None:
    """Serve both ports until `stop`, then end open streams and return within seconds. The engine stays open."""
    loaded: asyncio.Future[ServerState] = asyncio.get_running_loop().create_future()
    loaded.set_result(state)
    await serve_when(loaded, state.config, ports, stop, ready)


async def serve_when(
    loaded: asyncio.Future[ServerState],
    config: NeuroscopeConfig,
    ports: Ports,
    stop: asyncio.Event,
    ready: Callable[[], None] | None = None,
) -> ServerState | None:
    """The same from before there is a state. Raises what `loaded` raises; the ports are closed then."""
    if not is_loopback(config.host):
        reach = "with the key " if config.api_key else ""
        logger.warning("--host %s: anybody who can reach this machine %scan use the server", config.host, reach)
    service = _Service(config, ports, stop)
    try:
        await service.until(loaded)
        if not loaded.done() or service.over:
            return None
        service.switch_to(loaded.result())
        if ready is not None:
            ready()
        await service.until(None)
        return service.state
    finally:
        await service.finish()


class _Service:
    """Both ports, open, and what answers on them."""

    def __init__(self, config: NeuroscopeConfig, ports: Ports, stop: asyncio.Event) -> None:
        self.state: ServerState | None = None
        self._ports, self._stop = ports, stop
        before = Metrics()
        self._chat, self._features = (
            Front(name, create_loading_app(name, config), before, stop) for name in ("chat", "features")
        )
        fronts = ((self._chat, ports.chat), (self._features, ports.features))
        self._servers = [asyncio.create_task(self._serve_front(front, port)) for front, port in fronts]
        self._stopped = asyncio.create_task(stop.wait())
        for port in (ports.chat, ports.features):
            port.listen()

    @property
    def over(self) -> bool:
        """Whether somebody asked for the end, or a port failed."""
        return self._stopped.done() or any(server.done() for server in self._servers)

    async def until(self, other: asyncio.Future[ServerState] | None) -> None:
        """Wait for the end, or for something else before it."""
        waited: list[asyncio.Future[Any]] = [*self._servers, self._stopped, *([] if other is None else [other])]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)

    def switch_to(self, state: ServerState) -> None:
        """From here on both ports answer from this state."""
        self.state = state
        self._chat.app, self._features.app = create_apps(state)
        self._chat.metrics = self._features.metrics = state.metrics

    async def finish(self) -> None:
        """End what is open. Raises where a port failed; where one did, the other ends too."""
        self._stop.set()
        try:
            await _finish(self._servers)
        finally:
            self._ports.close()
            await self._stopped

    async def _serve_front(self, front: Front, port: Port) -> None:
        async def shutdown_trigger() -> None:
            await self._stop.wait()
            if self.state is not None:
                end_streams(self.state)  # before Hypercorn begins to wait for them (pgjones/hypercorn#308)

        await hypercorn.asyncio.serve(front, hypercorn_config(port), shutdown_trigger=shutdown_trigger)


def end_streams(state: ServerState) -> None:
    """Refuse new work, end the features streams, end every answer with an error."""
    state.stopping = True
    state.broadcast.close()
    for completion in list(state.running):
        completion.end("error", errors.stopping())


async def _serve_until_signal(
    config: NeuroscopeConfig, load: Callable[[], ServerState], ports: Ports, ready: Callable[[], None] | None
) -> ServerState | None:
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        logger.info("%s: stopping", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    try:
        return await serve_when(_loading(load), config, ports, stop, ready)
    finally:
        await _cancel_rest()


def _loading(load: Callable[[], ServerState]) -> asyncio.Future[ServerState]:
    """What `load` gives or raises, from a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    loaded: asyncio.Future[ServerState] = loop.create_future()

    def work() -> None:
        try:
            settle = functools.partial(loaded.set_result, load())
        except BaseException as error:
            settle = functools.partial(loaded.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=work, name="neuroscope-load", daemon=True).start()
    return loaded


async def _cancel_rest() -> None:
    """Hypercorn swallows a cancellation while it flushes a connection; ask until every task has ended."""
    for _ in range(CANCEL_ROUNDS):
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if not rest:
            return
        for task in rest:
            task.cancel()
        await asyncio.wait(rest, timeout=0.1)


async def _finish(servers: list[asyncio.Task[None]]) -> None:
    """Wait for the servers; cut off a reader that does not read. Raises where a server failed."""
    done, stuck = await asyncio.wait(servers, timeout=GRACE_SECONDS + 1)
    if stuck:
        await _cut_off(stuck)
    for server in done:
        server.result()


async def _cut_off(servers: set[asyncio.Task[None]]) -> None:
    logger.warning("some readers do not read what is left for them; cutting their connections")
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # of Hypercorn's tasks, cut in mid-sentence
    for server in servers:
        server.cancel()
    await asyncio.wait(servers, timeout=1)
