"""The features port: GET /v1/features/stream and GET /v1/features/labels."""

from collections.abc import AsyncIterator

import msgspec
from quart import Blueprint, Response, request

from server import label_notes, sse
from server.broadcast import Broadcast
from server.errors import invalid
from server.replies import json_reply
from server.state import ServerState

OPENING = b"retry: 2000\n\n"  # ms before an EventSource connects again; also what makes the headers leave at once


class LabelMap(msgspec.Struct, omit_defaults=True):
    """Every feature of the SAE with its label."""

    sae_id: str
    width: int
    labels: dict[str, str]
    details: dict[str, label_notes.LabelNote] | None = None  # only where asked for


def features_routes(state: ServerState) -> Blueprint:
    """The routes of the features port."""
    routes = Blueprint("features", __name__)

    @routes.get("/v1/features/stream")
    async def stream() -> Response:
        if request.method == "HEAD":
            return sse.response(None)
        return sse.response(_frames(state.broadcast))

    @routes.get("/v1/features/labels")
    async def labels() -> Response:
        details = label_notes.of(state.labels) if _wants_detail(request.args.getlist("detail")) else None
        return json_reply(LabelMap(state.labels.sae_id, state.labels.width, state.labels.all(), details))

    return routes


def _wants_detail(values: list[str]) -> bool:
    """Whether ?detail=1 was given. Raises ApiError for another value."""
    if values in ([], ["1"]):
        return bool(values)
    raise invalid("detail", f"detail is {', '.join(map(repr, values))}; expected 1, or leave it out.")


async def _frames(broadcast: Broadcast) -> AsyncIterator[bytes]:
    subscriber = broadcast.subscribe()
    try:
        yield OPENING
        async for frame in sse.until_end(subscriber.next_frame):
            yield frame
    finally:
        broadcast.unsubscribe(subscriber)
