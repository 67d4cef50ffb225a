"""Who may talk to the two ports, and the CORS answers for those who may.

A page anywhere could read a server on this machine by pointing a name of its own at it (DNS rebinding), so the name
that a request calls the server by must be one that no stranger can own: an address, a name without a dot or of a
private zone, or one that was allowed. Bound to loopback, only loopback's own names will do. In every case a page that
says where it comes from must come from loopback, from this very host, or be allowed.
"""

import ipaddress
import re
from collections.abc import Callable

from quart import Quart, Response, request

from neuroscope_jax.config import NeuroscopeConfig
from server.errors import ApiError

AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?P<port>:\d+)?", re.IGNORECASE)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
PRIVATE_ZONES = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test")  # never public names
METHODS = "GET, POST, OPTIONS"
EXPOSED = "X-Request-Id, Retry-After"
PREFLIGHT_SECONDS = "600"


def is_loopback(host: str) -> bool:
    """Whether a name or address to listen on is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def guard(app: Quart, config: NeuroscopeConfig) -> None:
    """Check Host and Origin of every request of an app; answer every preflight."""
    host_allowed = _host_rule(config)
    origins = {origin.lower() for origin in config.allowed_origins}

    @app.before_request
    async def check() -> Response | None:
        found = request.headers.get("Host", "")
        if not host_allowed(_name(found)):
            message = f"Host {found!r} is not this server; call it by 127.0.0.1 or localhost, or start it with "
            raise ApiError(403, message + "--allowed-hosts.", code="host_not_allowed")
        if not _origin_allowed(origins):
            message = f"Pages from {request.headers['Origin']!r} may not use this server; see --allowed-origins."
            raise ApiError(403, message, code="origin_not_allowed")
        return Response(status=204) if request.method == "OPTIONS" else None

    @app.after_request
    async def add_cors(response: Response) -> Response:
        response.vary.add("Origin")
        if "Origin" in request.headers and _origin_allowed(origins):
            _allow(response, request.headers["Origin"])
        return response


def _host_rule(config: NeuroscopeConfig) -> Callable[[str | None], bool]:
    names = {*LOOPBACK_NAMES, config.host.lower(), *(name.lower().rstrip(".") for name in config.allowed_hosts)}
    if is_loopback(config.host):
        return lambda name: name in names
    return lambda name: name is not None and (name in names or not _could_be_a_strangers(name))


def _could_be_a_strangers(name: str) -> bool:
    """Whether somebody on the internet could own this name and point it here."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "." in name and not name.endswith(PRIVATE_ZONES)
    return False


def _allow(response: Response, origin: str) -> None:
    """Never with credentials: a key is sent by the page itself."""
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = EXPOSED
    if request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = METHODS
        response.headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
        response.vary.add("Access-Control-Request-Headers")
        asked = request.headers.get("Access-Control-Request-Headers")
        if asked is not None:
            response.headers["Access-Control-Allow-Headers"] = asked


def _origin_allowed(allowed: set[str]) -> bool:
    origin = request.headers.get("Origin")
    if origin is None or "*" in allowed or origin.lower() in allowed:
        return True  # without one it is no page: curl, SDKs
    _, _, authority = origin.partition("://")
    return _name(authority) in LOOPBACK_NAMES or authority.lower() == request.headers.get("Host", "").lower() != ""


def _name(authority: str) -> str | None:
    """The host in host:port, in lower case, without brackets and final dot."""
    match = AUTHORITY.fullmatch(authority)
    return match["name"].strip("[]").lower() if match else None
