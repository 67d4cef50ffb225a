"""The features port: GET /v1/features/stream and GET /v1/features/labels."""

import re
from collections.abc import AsyncIterator

import msgspec
from quart import Blueprint, Response, request

from server import label_notes, sse
from server.errors import ApiError, invalid
from server.replies import json_reply
from server.state import ServerState
from server.subscriber import Subscriber

OPENING = b"retry: 2000\n\n"  # ms before an EventSource connects again; also what makes the headers leave at once
EVENT_ID = re.compile(r"[0-9]{1,18}")
MAX_SUBSCRIBERS = 512
RETRY_SECONDS = 5


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
        completion_id, last_id = request.args.get("completion_id"), _last_event_id()
        if completion_id is not None:
            _check_followed(state, completion_id)
            if _has_read_all(state, completion_id, last_id):
                return Response(status=204)  # an EventSource then stops connecting again
        if request.method == "HEAD":
            return sse.response(None)
        if state.broadcast.subscribers >= MAX_SUBSCRIBERS:
            raise _too_many()
        return sse.response(_frames(state, completion_id, last_id))

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


def _last_event_id() -> int | None:
    """Where a reader was: the header, which is newer where both are there, or the query. Other text is ignored."""
    given = (request.headers.get("Last-Event-Id", ""), request.args.get("last_event_id", ""))
    return next((int(text) for text in given if EVENT_ID.fullmatch(text)), None)


def _check_followed(state: ServerState, completion_id: str) -> None:
    running = any(completion_id in completion.choice_ids for completion in state.running)
    if not running and not state.broadcast.history.knows(completion_id):
        message = f"There is no completion {completion_id!r}, or it was over long ago."
        raise ApiError(404, message, param="completion_id", code="completion_not_found")


def _has_read_all(state: ServerState, completion_id: str, last_id: int | None) -> bool:
    ending = state.broadcast.history.ending(completion_id)
    return ending is not None and last_id is not None and ending.id <= last_id < state.broadcast.history.next_id


def _too_many() -> ApiError:
    message = f"{MAX_SUBSCRIBERS} readers follow the features stream already."
    return ApiError(429, message, code="too_many_readers", headers={"Retry-After": str(RETRY_SECONDS)})


async def _frames(state: ServerState, completion_id: str | None, last_id: int | None) -> AsyncIterator[bytes]:
    subscriber: Subscriber = state.broadcast.subscribe(completion_id, last_id)
    try:
        yield OPENING
        async for frame in sse.until_end(subscriber.next_frames, state.config.heartbeat_seconds):
            yield frame
    finally:
        state.broadcast.unsubscribe(subscriber)
