"""How Hypercorn is run: on sockets that are bound already, quiet, and soon done when it is told to stop."""

import logging

import hypercorn.config

from server.ports import Port

GRACE_SECONDS = 2.0  # for answers to end after a signal, before connections are cut
BACKLOG = 1024  # connections that wait to be accepted


class _Config(hypercorn.config.Config):
    """Hypercorn's settings, with sockets that are bound already and stay ours to close."""

    def __init__(self, port: Port) -> None:
        super().__init__()
        self._port = port

    def create_sockets(self) -> hypercorn.config.Sockets:
        return hypercorn.config.Sockets([], list(self._port.sockets), [])


def hypercorn_config(port: Port) -> hypercorn.config.Config:
    """Settings for one port."""
    config = _Config(port)
    config.errorlog = logging.getLogger("server.hypercorn")
    config.errorlog.setLevel(logging.WARNING)
    config.graceful_timeout = GRACE_SECONDS
    config.include_server_header = False
    config.backlog = BACKLOG
    return config
