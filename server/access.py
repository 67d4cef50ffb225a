"""Who may talk to the two ports, and the CORS answers for those who may.

Bound to loopback, a request must name a loopback host: else a page anywhere could read the server by pointing its own
name at 127.0.0.1. In every case a page that says where it comes from must come from loopback, or from this very host.
"""

import ipaddress
import re

from quart import Quart, Response, request

from server.errors import ApiError

AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?P<port>:\d+)?", re.IGNORECASE)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
METHODS = "GET, POST, OPTIONS"
PREFLIGHT_SECONDS = "600"


def is_loopback(host: str) -> bool:
    """Whether a name or address to listen on is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def guard(app: Quart, host: str) -> None:
    """Check Host and Origin of every request of an app that listens on `host`; answer every preflight."""
    names = {*LOOPBACK_NAMES, host.lower()} if is_loopback(host) else None

    @app.before_request
    async def check() -> Response | None:
        found = request.headers.get("Host", "")
        if names is not None and _name(found) not in names:
            raise ApiError(403, f"Host {found!r} is not this server; call it by 127.0.0.1 or localhost.")
        if not _origin_allowed():
            raise ApiError(403, f"Pages from {request.headers['Origin']!r} may not use this server.")
        return Response(status=204) if request.method == "OPTIONS" else None

    @app.after_request
    async def add_cors(response: Response) -> Response:
        response.vary.add("Origin")
        if "Origin" in request.headers and _origin_allowed():
            _allow(response, request.headers["Origin"])
        return response


def _allow(response: Response, origin: str) -> None:
    response.headers["Access-Control-Allow-Origin"] = origin
    if request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = METHODS
        response.headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
        asked = request.headers.get("Access-Control-Request-Headers")
        if asked is not None:
            response.headers["Access-Control-Allow-Headers"] = asked


def _origin_allowed() -> bool:
    origin = request.headers.get("Origin")
    if origin is None:
        return True  # no page: curl, SDKs
    _, _, authority = origin.partition("://")
    return _name(authority) in LOOPBACK_NAMES or authority.lower() == request.headers.get("Host", "").lower() != ""


def _name(authority: str) -> str | None:
    """The host in host:port, in lower case, without brackets and final dot."""
    match = AUTHORITY.fullmatch(authority)
    return match["name"].strip("[]").lower() if match else None
