"""From the bytes of a request to a checked struct. Every refusal names the field."""

import asyncio
import re
from typing import TypeVar

import msgspec
from quart import request

from server.errors import ApiError, invalid

BODY_SECONDS = 60
JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json")
ERROR_PATH = re.compile(r" - at (`key` in )?`\$\.?(?P<path>[^`]*)`$")
HIGH, LOW = rb"\\u[dD][89abAB][\da-fA-F]{2}", rb"\\u[dD][c-fC-F][\da-fA-F]{2}"  # escapes of a surrogate pair's halves
ESCAPE = 6  # bytes of one
# Stretches of what is whole and stretches of halves: megabytes of either are a single match, which goes on without
# looking back. A backslash that is itself escaped begins no escape.
WHOLE = rb"[^\\]++|%b%b|\\(?!u[dD][89a-fA-F][\da-fA-F]{2})." % (HIGH, LOW)
STRETCHES = re.compile(rb"(?:%b)++|(?P<halves>(?:%b(?!%b)|%b)++)" % (WHOLE, HIGH, LOW, LOW), re.DOTALL)
T = TypeVar("T", bound=msgspec.Struct)


async def read_request(kind: type[T]) -> T:
    """The body of the current request. Raises ApiError."""
    return decode(await _body(), kind, request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding"))


def decode(body: bytes, kind: type[T], content_type: str, encoding: str | None = None) -> T:
    """Strict JSON to the struct. Raises ApiError."""
    if not JSON_TYPE.fullmatch(content_type.partition(";")[0].strip().lower()):
        found = repr(content_type) if content_type else "missing"
        raise ApiError(415, f"Content-Type is {found}; send 'Content-Type: application/json'.")
    if encoding and encoding.strip().lower() != "identity":
        raise ApiError(415, f"Content-Encoding is {encoding!r}; send the body as it is, without compression.")
    try:
        return msgspec.json.decode(_whole_characters(body), type=kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(None, f"The body is not valid JSON: {error}") from error


async def _body() -> bytes:
    """The request's body. Not by get_data(): its wait_for can swallow the cancellation of a client that left."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body: bytes = await request.body
            return body
    except TimeoutError:
        raise ApiError(408, f"The body of the request did not arrive within {BODY_SECONDS} seconds.") from None


def _wrong_field(text: str) -> ApiError:
    """msgspec's own words with the place put in front, as `messages[0].role: …`."""
    match = ERROR_PATH.search(text)
    where = match["path"].partition("[...]")[0] if match else None  # [...]: some value of an object
    return invalid(where or None, f"{where or 'body'}: {ERROR_PATH.sub('', text)}.")


def _whole_characters(body: bytes) -> bytes:
    r"""Half a surrogate pair (`\ud83c`: JavaScript cut an emoji in two) as the replacement character."""

    def mended(stretch: re.Match[bytes]) -> bytes:
        return rb"\ufffd" * (len(stretch[0]) // ESCAPE) if stretch["halves"] else stretch[0]

    return STRETCHES.sub(mended, body) if rb"\ud" in body or rb"\uD" in body else body
