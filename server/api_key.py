"""The optional API key, on both ports: Authorization: Bearer, x-api-key, or ?api_key= for an EventSource.

The key is compared in constant time and never written anywhere; the access log leaves out every query.
"""

import hmac
from collections.abc import Iterator

from quart import Quart, request

from server.errors import ApiError

OPEN_PATHS = ("/health",)  # monitors have no key


def require_key(app: Quart, key: str | None) -> None:
    """Refuse what comes without the key. Call it after `guard`, whose preflights need none; without a key, all pass."""
    if key is None:
        return

    @app.before_request
    async def check() -> None:
        if request.path in OPEN_PATHS:
            return
        found = [hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()) for given in _given()]
        if not any(found):
            raise _refusal(given=bool(found))


def _given() -> Iterator[str]:
    scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        yield token.strip()
    if "X-Api-Key" in request.headers:
        yield request.headers["X-Api-Key"].strip()
    if request.method in ("GET", "HEAD"):  # an EventSource cannot send headers
        yield from request.args.getlist("api_key")


def _refusal(given: bool) -> ApiError:
    message = (
        "Incorrect API key provided." if given else "You didn't provide an API key. Send 'Authorization: Bearer KEY'."
    )
    return ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
