"""Who sent a request, as far as the queue cares: one program on one machine is one client, and clients take turns."""

from quart import request


def name() -> str:
    """The sender of the request at hand: its address and what it calls itself."""
    address = (request.scope.get("client") or ("",))[0]
    return f"{address} {request.headers.get('User-Agent', '')}"
