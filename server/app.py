"""Both apps on one event loop, from the first connection to the last.

`server/__main__.py` binds the ports, loads the engine and builds the ServerState; `run` returns when SIGINT or SIGTERM
came and everything is closed, the engine included.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable

import hypercorn.asyncio
import hypercorn.config
from quart import Quart

from server import errors
from server.access import guard, is_loopback
from server.chat import chat_routes
from server.errors import register_error_handlers
from server.features import features_routes
from server.health import health_routes
from server.ports import Port, Ports
from server.state import ServerState

logger = logging.getLogger(__name__)

GRACE_SECONDS = 2.0  # for answers to end after a signal, before connections are cut
CANCEL_ROUNDS = 10


def create_apps(state: ServerState) -> tuple[Quart, Quart]:
    """The chat app and the features app, over one state."""
    chat, features = _app("chat", state), _app("features", state)
    chat.register_blueprint(chat_routes(state))
    features.register_blueprint(features_routes(state))
    return chat, features


def run(state: ServerState, ports: Ports, ready: Callable[[], None] | None = None) -> None:
    """Serve until a signal, then close everything. `ready` is called once clients can connect.

    A second signal ends the process at once.
    """
    try:
        asyncio.run(_serve_until_signal(state, ports, ready))
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # asyncio leaves Python's own, which ends in a traceback
        ports.close()
        state.engine.close()


async def serve(state: ServerState, ports: Ports, stop: asyncio.Event, ready: Callable[[], None] | None = None) -> None:
    """Serve both ports until `stop`, then end open streams and return within seconds. The engine stays open."""
    if not is_loopback(state.config.host):
        logger.warning("--host %s: anybody who can reach this machine can use the server", state.config.host)
    apps = zip(create_apps(state), (ports.chat, ports.features), strict=True)
    servers = [asyncio.create_task(_serve_app(app, port, state, stop)) for app, port in apps]
    stopped = asyncio.create_task(stop.wait())
    for port in (ports.chat, ports.features):
        port.listen()
    if ready is not None:
        ready()
    await asyncio.wait([*servers, stopped], return_when=asyncio.FIRST_COMPLETED)
    stop.set()  # where one server failed, the other ends too
    try:
        await _finish(servers)
    finally:
        ports.close()


def end_streams(state: ServerState) -> None:
    """Refuse new work, end the features streams, end every answer with an error."""
    state.stopping = True
    state.broadcast.close()
    for completion in list(state.running):
        completion.end("error", errors.stopping())


async def _serve_until_signal(state: ServerState, ports: Ports, ready: Callable[[], None] | None) -> None:
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        logger.info("%s: stopping", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    await serve(state, ports, stop, ready)
    await _cancel_rest()


async def _cancel_rest() -> None:
    """Hypercorn swallows a cancellation while it flushes a connection; ask until every task has ended."""
    for _ in range(CANCEL_ROUNDS):
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if not rest:
            return
        for task in rest:
            task.cancel()
        await asyncio.wait(rest, timeout=0.1)


async def _serve_app(app: Quart, port: Port, state: ServerState, stop: asyncio.Event) -> None:
    async def shutdown_trigger() -> None:
        await stop.wait()
        end_streams(state)  # before Hypercorn begins to wait for them (pgjones/hypercorn#308)

    await hypercorn.asyncio.serve(app, _hypercorn_config(port), shutdown_trigger=shutdown_trigger)


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


def _app(name: str, state: ServerState) -> Quart:
    app = Quart(f"server.{name}", static_folder=None, template_folder=None)
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False  # a redirect would lose the body of a POST
    guard(app, state.config.host)
    register_error_handlers(app)
    app.register_blueprint(health_routes(state))
    return app


class _Config(hypercorn.config.Config):
    """Hypercorn's settings, with sockets that are bound already and stay ours to close."""

    def __init__(self, port: Port) -> None:
        super().__init__()
        self._port = port

    def create_sockets(self) -> hypercorn.config.Sockets:
        return hypercorn.config.Sockets([], list(self._port.sockets), [])


def _hypercorn_config(port: Port) -> hypercorn.config.Config:
    config = _Config(port)
    config.errorlog = logging.getLogger("server.hypercorn")
    config.errorlog.setLevel(logging.WARNING)
    config.graceful_timeout = GRACE_SECONDS
    config.include_server_header = False
    return config
