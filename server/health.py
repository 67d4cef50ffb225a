"""GET /health, on both ports: 200 while the engine serves, 503 once its thread has died or the server is stopping.

Until the model is loaded it is 503 as well: see apps.py.
"""

import msgspec
from quart import Blueprint, Response

from server import errors
from server.replies import json_reply
from server.state import ServerState


class Health(msgspec.Struct):
    """`running` and `waiting` count generations: busy is not ill."""

    status: str
    model: str
    running: int
    waiting: int


def health_routes(state: ServerState) -> Blueprint:
    """The one route."""
    routes = Blueprint("health", __name__)

    @routes.get("/health")
    async def health() -> Response:
        if state.stopping:
            raise errors.stopping()
        if not state.engine.alive:
            raise errors.engine_stopped()
        return json_reply(Health("ok", state.model_name, state.metered.running, state.metered.waiting))

    return routes
