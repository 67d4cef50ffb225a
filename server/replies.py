"""Plain JSON answers."""

from collections.abc import Mapping

import msgspec
from quart import Response


def json_reply(body: msgspec.Struct, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """One struct as application/json."""
    data = msgspec.json.encode(body)
    return Response(data, status=status, content_type="application/json", headers=dict(headers or {}))
