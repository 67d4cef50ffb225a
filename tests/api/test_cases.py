"""Every case of cases/*.json: as bytes over HTTP, streamed and not, and once more through the official client."""

import re
import socket
from typing import Any

import httpx
import openai
import pytest

from tests.api.answers import CHUNK, PLAIN, Answer, plain_answer, streamed_answer
from tests.api.case import CHAT, FOLDER, SMALL, TEXT, Case, load
from tests.api.serving import CaseServer

FILES = sorted(path.name for path in FOLDER.glob("*.json"))
CASES = [case for name in FILES for case in load(name)]
BODIES = [(case, body) for case in CASES if case.raw is None and case.wire is None for body in case.requests()]
BYTES = [case for case in CASES if case.raw is not None or case.wire is not None]
TYPES = {"message": str, "type": str, "param": str | None, "code": str | None}


def named(found: list[Any]) -> list[Any]:
    """pytest's ids of cases."""
    pairs = [item if isinstance(item, tuple) else (item, None) for item in found]
    return [f"{case.id} {case.what}" for case, _ in pairs]


@pytest.mark.parametrize(("case", "body"), BODIES, ids=named(BODIES))
def test_case(servers: dict[str, CaseServer], case: Case, body: dict[str, Any]) -> None:
    server, answers = servers[case.server], []
    for stream in [body["stream"]] if "stream" in body else [False, True]:
        server.set(case)
        sent = body if "stream" in body or case.method != "POST" else {**body, "stream": stream}
        response = send(server, case, sent)
        check_response(case, response)
        if case.expect.status == 200 and case.path in SMALL and case.method == "POST":
            answers.append(read(case, sent, response))
            check_engine(server, case)
        check_official_client(server, case, sent, response)
    for answer in answers:
        check_answer(case, answer)
    if len(answers) == 2:
        assert (answers[0].texts, answers[0].reasons) == (answers[1].texts, answers[1].reasons)
        assert answers[0].logprobs == answers[1].logprobs
        assert answers[1].usage in (None, answers[0].usage)
    check_same_prompt(server, case)


@pytest.mark.parametrize("case", BYTES, ids=named(BYTES))
def test_case_of_bytes(servers: dict[str, CaseServer], case: Case) -> None:
    server = servers[case.server]
    server.set(case)
    check_response(case, send_bytes(server, case))
    assert server.http.get(f"{server.urls['chat']}/health").status_code == 200


def send(server: CaseServer, case: Case, body: dict[str, Any]) -> httpx.Response:
    headers = {name: value for name, value in case.headers.items() if value is not None}
    content = None if case.method in ("GET", "HEAD") else body
    return server.http.request(case.method, server.urls[case.port] + case.path, json=content, headers=headers)


def send_bytes(server: CaseServer, case: Case) -> httpx.Response:
    """`raw` with the case's headers, or all of `wire` through a socket."""
    if case.wire is not None:
        return _through_socket(httpx.URL(server.urls[case.port]), _bytes(case.wire))
    assert case.raw is not None
    headers = {"Content-Type": "application/json", **case.headers}
    sent = {name: value for name, value in headers.items() if value is not None}
    url = server.urls[case.port] + case.path
    return server.http.request(case.method, url, content=_bytes(case.raw), headers=sent)


def _through_socket(url: httpx.URL, data: bytes) -> httpx.Response:
    with socket.create_connection((url.host, url.port), timeout=20) as connection:
        connection.sendall(data)
        found = b""
        while piece := connection.recv(65536):
            found += piece
    head, _, content = found.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = [tuple(line.split(": ", 1)) for line in lines]
    return httpx.Response(int(status.split()[1]), headers=headers, content=content)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1") if all(ord(c) < 256 for c in text) else text.encode()


def check_response(case: Case, response: httpx.Response) -> None:
    """Status, headers, and the error object of every refusal."""
    assert response.status_code == case.expect.status, response.text[:300]
    for name, pattern in case.expect.headers.items():
        found = response.headers.get(name)
        assert found == pattern or (pattern and found and re.fullmatch(pattern, found)), f"{name}: {found}"
    for text in case.expect.never:
        assert text not in response.text
    if response.status_code >= 400 and case.method != "HEAD":
        check_error(case, response)
    if case.expect.body is not None and response.headers["content-type"] == "application/json":
        check_part(case.expect.body, response.json())


def check_error(case: Case, response: httpx.Response) -> None:
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == set(TYPES)
    assert all(isinstance(error[name], kind) for name, kind in TYPES.items())
    assert error["type"] == ("server_error" if response.status_code >= 500 else error["type"])
    for name, value in (case.expect.error or {}).items():
        if name == "message":
            assert re.search(value, error["message"]), error["message"]
        else:
            assert error[name] == value


def check_part(part: Any, whole: Any) -> None:
    """Everything of `part` is in `whole`; further keys of objects do not matter."""
    if isinstance(part, dict):
        for name, value in part.items():
            check_part(value, whole[name])
    elif isinstance(part, list):
        assert len(part) == len(whole)
        for one, other in zip(part, whole, strict=True):
            check_part(one, other)
    else:
        assert part == whole


def read(case: Case, sent: dict[str, Any], response: httpx.Response) -> Answer:
    if sent.get("stream"):
        return streamed_answer(response, case.path, bool((sent.get("stream_options") or {}).get("include_usage")))
    return plain_answer(response, case.path)


def check_answer(case: Case, answer: Answer) -> None:
    expect = case.expect
    assert expect.texts is None or answer.texts == expect.texts
    assert expect.reasons is None or answer.reasons == expect.reasons
    assert expect.deltas is None or not answer.deltas or answer.deltas == expect.deltas
    if expect.usage is not None and answer.usage is not None:
        assert [answer.usage["prompt_tokens"], answer.usage["completion_tokens"]] == expect.usage


def check_engine(server: CaseServer, case: Case) -> None:
    """What reached the engine: prompts, and options as the case names them."""
    requests = [generation.request for generation in server.engine.generations]
    if case.expect.prompts is not None:
        assert [server.state.tokenizer.spelled_out(request.prompt_ids) for request in requests] == case.expect.prompts
    for request in requests:
        assert request.prompt_ids[0] == server.state.tokenizer.bos_id
        assert request.prompt_ids.count(server.state.tokenizer.bos_id) == 1
        for name, value in (case.expect.engine or {}).items():
            found = getattr(request if name == "max_tokens" else request.sampling, name)
            assert found == _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def check_same_prompt(server: CaseServer, case: Case) -> None:
    if case.expect.same_prompt_as is None:
        return
    found = server.engine.generations[0].request.prompt_ids
    server.set(case)
    send(server, case, {**SMALL[case.path], **case.expect.same_prompt_as})
    assert server.engine.generations[0].request.prompt_ids == found


def check_official_client(server: CaseServer, case: Case, sent: dict[str, Any], response: httpx.Response) -> None:
    """The client's own transport, its own reading of answers, streams and errors."""
    if case.path not in (CHAT, TEXT) or case.port != "chat" or case.method != "POST" or case.headers:
        return
    server.set(case)
    path = case.path.removeprefix("/v1")
    if case.expect.status >= 400:
        with pytest.raises(openai.APIStatusError) as caught:
            server.openai.post(path, body=sent, cast_to=PLAIN[case.path == CHAT])
        error = response.json()["error"]
        assert caught.value.status_code == case.expect.status
        assert (caught.value.code, caught.value.param, caught.value.type) == (
            error["code"], error["param"], error["type"],
        )  # fmt: skip
        return
    assert client_texts(server, path, sent) == read(case, sent, response).texts


def client_texts(server: CaseServer, path: str, sent: dict[str, Any]) -> list[str]:
    """The texts of the choices as the official client gives them."""
    chat = path == CHAT.removeprefix("/v1")
    if not sent.get("stream"):
        whole: Any = server.openai.post(path, body=sent, cast_to=PLAIN[chat])
        return [choice.message.content if chat else choice.text for choice in whole.choices]
    kind = CHUNK[chat]
    stream: Any = server.openai.post(path, body=sent, cast_to=kind, stream=True, stream_cls=openai.Stream[kind])
    texts: dict[int, str] = {}
    for choice in (choice for chunk in stream for choice in chunk.choices):
        piece = (choice.delta.content if chat else choice.text) or ""
        texts[choice.index] = texts.get(choice.index, "") + piece
    return [texts[index] for index in sorted(texts)]
