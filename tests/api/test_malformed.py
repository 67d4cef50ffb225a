"""Requests no program would write, from hypothesis: each has an answer, and the next good request has its own.

NEUROSCOPE_FUZZ=2000 sends so many of each kind; the default takes seconds.
"""

import json
import os
import re
import socket
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.body import _whole_characters
from server.schemas import ChatRequest
from server.text_schemas import TextRequest
from tests.api.case import CHAT, SMALL, TEXT
from tests.api.serving import CaseServer
from tests.api.test_cases import TYPES

EXAMPLES = int(os.environ.get("NEUROSCOPE_FUZZ", "60"))
MANY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="NEUROSCOPE_FUZZ" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
PATHS = st.sampled_from([CHAT, TEXT])
NUMBERS = st.integers() | st.integers(-3, 200) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(), max_size=20)  # half surrogate pairs among them
ANY_JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({*ChatRequest.__struct_fields__, *TextRequest.__struct_fields__} - {"stream"})
MESSAGE = st.dictionaries(st.sampled_from(["role", "content", "name", "tool_calls", "x"]), ANY_JSON, max_size=4)
LIKELY_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool", "developer", "wizard"]),
        "content": TEXTS | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})),
    }
)
MESSAGES = st.lists(MESSAGE | LIKELY_MESSAGE, max_size=5)
PROMPTS = TEXTS | st.lists(st.integers(-2, 400), max_size=5) | st.lists(TEXTS | st.integers(), max_size=3)
CHANGES = st.dictionaries(st.sampled_from(FIELDS), ANY_JSON, max_size=4)
STATUSES = {200, 400, 404, 408, 413, 415}


@pytest.fixture(scope="module")
def server(servers: dict[str, CaseServer]) -> CaseServer:
    found = servers["chat"]
    found.engine.script, found.engine.fail_at = found.token_ids(["o", "k", "<stop>"]), None
    return found


@pytest.fixture(autouse=True)
def _answers_the_next_good_request(server: CaseServer) -> Any:
    yield
    good = server.http.post(server.urls["chat"] + CHAT, json=SMALL[CHAT])
    assert good.json()["choices"][0]["message"]["content"] == "ok"
    assert not server.state.running


def check(response: httpx.Response) -> None:
    """An answer or a refusal in OpenAI's shape; never a failure of the server."""
    assert response.status_code in STATUSES, response.text[:300]
    if response.status_code != 200:
        error = response.json()["error"]
        assert set(error) == set(TYPES)
        assert all(isinstance(error[name], kind) for name, kind in TYPES.items())


@MANY
@given(path=PATHS, changes=CHANGES, messages=MESSAGES, prompt=PROMPTS, stream=st.booleans())
def test_fields_of_any_kind(
    server: CaseServer, path: str, changes: dict[str, Any], messages: list[Any], prompt: Any, stream: bool
) -> None:
    own = {"messages": messages} if path == CHAT else {"prompt": prompt}
    # The client of the tests cannot send half a surrogate pair as it is; escaped, as JavaScript sends it, it can.
    body = json.dumps({"stream": stream, **own, **changes}).encode()
    check(_post(server, path, body))


PIECES = [
    rb"\n",
    rb"\\",
    b"a",
    rb"\ud83c",
    rb"\udf89",
    rb"\uDfff",
    rb"\u00e9",
    b"ud83c",
    rb"\"",
    "é".encode(),
    b"\n",
    b"\\",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_half_pairs_become_the_replacement_character(body: bytes) -> None:
    """Against a reader that takes one escape after the other."""
    whole, at = b"", 0
    while at < len(body):
        found = re.compile(rb"\\u(d[89ab]..)\\u(d[c-f]..)|\\u(d[89a-f]..)|\\.|.", re.DOTALL | re.IGNORECASE).match(
            body, at
        )
        whole += rb"\ufffd" if found[3] else found[0]
        at = found.end()
    assert _whole_characters(body) == whole


@MANY
@given(path=PATHS, body=ANY_JSON)
def test_json_of_any_kind(server: CaseServer, path: str, body: Any) -> None:
    check(_post(server, path, json.dumps(body).encode()))


@MANY
@given(path=PATHS, body=st.binary(max_size=200), content_type=st.sampled_from(["application/json", "text/plain", ""]))
def test_bodies_of_any_bytes(server: CaseServer, path: str, body: bytes, content_type: str) -> None:
    check(_post(server, path, body, content_type))


@MANY
@given(path=PATHS, changes=CHANGES, at=st.integers(0, 400), byte=st.binary(max_size=3), cut=st.integers(0, 3))
def test_json_with_a_few_bytes_changed(
    server: CaseServer, path: str, changes: dict[str, Any], at: int, byte: bytes, cut: int
) -> None:
    whole = json.dumps({**SMALL[path], **changes}).encode()
    at %= len(whole)
    check(_post(server, path, whole[:at] + byte + whole[at + cut :]))


@MANY
@given(data=st.binary(max_size=300), head=st.sampled_from([b"", b"POST ", b"POST /v1/chat/completions HTTP/1.1\r\n"]))
def test_bytes_that_are_no_http(server: CaseServer, data: bytes, head: bytes) -> None:
    """Whatever the answer, if there is one: only the next good request matters."""
    url = httpx.URL(server.urls["chat"])
    with socket.create_connection((url.host, url.port), timeout=20) as connection:
        connection.sendall(head + data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def _post(server: CaseServer, path: str, body: bytes, content_type: str = "application/json") -> httpx.Response:
    return server.http.post(server.urls["chat"] + path, content=body, headers={"Content-Type": content_type})
