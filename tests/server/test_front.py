"""What every request passes: the access log, the request's id, the metrics."""

import asyncio
import contextlib
import logging
import re

import pytest

from server.front import Front
from server.metrics import Metrics
from server.paths import canonical

USER = [{"role": "user", "content": "confidential"}]


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "server.access"]


def ours(caplog):
    """Every line but those of the tests' own client."""
    return [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]


async def metric(server, name):
    """One figure of /metrics, 0 where it is not there yet."""
    text = (await server.http.get(f"{server.features_url}/metrics")).text
    found = re.search(rf"^neuroscope_{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/models", "/v1/models"),
        ("//v1///models//", "/v1/models"),
        ("/models", "/v1/models"),
        ("/v1", "/v1"),
        ("/", "/"),
        ("", "/"),
        ("/health/", "/health"),
        ("/v1x/models", "/v1/v1x/models"),
        ("http://localhost:8080/models", "/v1/models"),
        ("*", "/v1/*"),
        ("http://localhost:8080", "/"),
        ("http://[::1/health", "/health"),
        ("x://[a]b/models", "/v1/models"),
        ("/v1/v1/models", "/v1/v1/models"),
    ],
)
def test_canonical_paths(path, expected):
    assert canonical(path) == expected


@pytest.mark.parametrize("sent", [False, True])
async def test_what_fails_below_the_app_is_answered_and_told(sent, caplog):
    """Before the answer began the client hears of it; after that only the connection can end."""
    caplog.set_level(logging.INFO)
    messages = []

    async def app(scope, receive, send):
        if sent:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise OSError("secret detail")

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    front = Front("chat", app, Metrics(), asyncio.Event())
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": "/health", "raw_path": b"/health"}
    with contextlib.ExitStack() as stack:
        if sent:
            stack.enter_context(pytest.raises(OSError, match="secret"))
        await front({**scope, "headers": []}, receive, send)
    assert [message.get("status") for message in messages] == ([200] if sent else [500, None])
    assert b"secret" not in b"".join(message.get("body", b"") for message in messages)
    assert lines(caplog)[-1].startswith(f"chat GET /health {200 if sent else 500} ")


async def test_one_line_a_request_with_neither_prompt_nor_query(server, caplog, wait_until):
    caplog.set_level(logging.INFO)
    headers = {"X-Request-Id": "mine"}
    body = {"model": "demo", "messages": USER, "max_tokens": 2}
    for stream in (False, True):
        url = f"{server.chat_url}/v1/chat/completions?api_key=sesame"
        await server.http.post(url, json={**body, "stream": stream}, headers=headers)
    await server.http.get(f"{server.features_url}/v1/none%0Ainjected")
    await wait_until(lambda: len(lines(caplog)) == 3)
    plain, streamed, unknown = lines(caplog)
    assert re.fullmatch(r"chat POST /v1/chat/completions 200 \d+ bytes \d+ ms mine", plain)
    assert re.fullmatch(r"chat POST /v1/chat/completions 200 \d+ bytes \d+ ms mine", streamed)
    assert re.fullmatch(r"features GET /v1/none%0Ainjected 404 \d+ bytes \d+ ms req_[0-9a-f]{32}", unknown)
    assert not [line for line in ours(caplog) if "confidential" in line or "sesame" in line]


async def test_the_key_is_in_no_log(start_server, caplog):
    caplog.set_level(logging.DEBUG)
    server = await start_server(api_key="sesame-42")
    assert "sesame" not in repr(server.state.config)
    for headers in ({"Authorization": "Bearer sesame-42"}, {"Authorization": "Bearer sesame-4"}, {}):
        await server.http.get(f"{server.features_url}/v1/features/labels?api_key=sesame-41", headers=headers)
    assert len(lines(caplog)) == 3
    assert not any("sesame" in line for line in ours(caplog))


async def test_a_client_that_leaves_is_in_the_log(server, caplog, wait_until):
    caplog.set_level(logging.INFO)
    server.engine.permits = 0
    for stream in (True, False):
        request = asyncio.create_task(server.chat(stream=stream))
        await wait_until(lambda: len(server.state.running) == 1)
        request.cancel()
        await wait_until(lambda: not server.state.running)
    await wait_until(lambda: len(lines(caplog)) == 2)
    assert ["left before the end" in line for line in lines(caplog)] == [True, True]
    assert " 499 " in lines(caplog)[1]


async def test_metrics_count_what_happened(server, monkeypatch):
    async with server.features() as events:
        await server.chat(max_tokens=5)
        await server.completion_events(events)
        assert await metric(server, "feature_subscribers") == 1
    await server.chat(max_tokens=3, stream=True)
    await server.chat(temperature="hot")
    server.engine.fail_at = 1
    await server.chat()
    assert await metric(server, "generated_tokens_total") == 9
    assert await metric(server, "prompt_tokens_total") == 6
    assert await metric(server, "first_token_seconds_count") == 3
    assert await metric(server, "decode_tokens_per_second_count") == 2
    assert await metric(server, "feature_events_total") == 12
    assert await metric(server, "features_filtered_total") == (0 + 1 + 2 + 3 + 0) + (0 + 1 + 2) + 0
    assert await metric(server, 'completions_total{reason="length"}') == 2
    assert await metric(server, 'completions_total{reason="error"}') == 1
    labels = 'method="POST",port="chat",route="/v1/chat/completions"'
    assert await metric(server, f'http_responses_total{{{labels},status="200"}}') == 2
    assert await metric(server, f'http_responses_total{{{labels},status="400"}}') == 1
    assert await metric(server, f'http_responses_total{{{labels},status="500"}}') == 1


async def test_strangers_cannot_fill_the_metrics(server):
    for number in range(5):
        await server.http.request(f"FOO{number}", f"{server.chat_url}/v1/nowhere{number}")
    text = (await server.http.get(f"{server.chat_url}/metrics")).text
    assert "nowhere" not in text
    assert "FOO" not in text


async def test_every_server_counts_for_itself(start_server):
    first, second = await start_server(), await start_server()
    await first.chat(max_tokens=4)
    assert [await metric(server, "generated_tokens_total") for server in (first, second)] == [4, 0]


async def test_health_says_how_busy_it_is(server, wait_until):
    server.engine.permits = 0
    requests = [asyncio.create_task(server.chat(max_tokens=1)) for _ in range(3)]
    await wait_until(lambda: len(server.engine.generations) == 3)
    health = (await server.http.get(f"{server.chat_url}/health")).json()
    assert (health["status"], health["running"], health["waiting"]) == ("ok", 1, 2)
    assert await metric(server, "requests_waiting") == 2
    server.engine.permit(3)
    await asyncio.gather(*requests)
    health = (await server.http.get(f"{server.chat_url}/health")).json()
    assert (health["running"], health["waiting"]) == (0, 0)


async def test_refusals_of_a_full_queue_are_counted(start_server, wait_until):
    server = await start_server(queue_size=1)
    server.engine.permits = 0
    first = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 1 and server.engine._waiting == 0)
    second = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 2)
    assert (await server.chat()).status_code == 429
    assert await metric(server, "queue_refusals_total") == 1
    assert (await server.http.get(f"{server.chat_url}/health")).json()["waiting"] == 1
    server.engine.permit(2)
    await asyncio.gather(first, second)


async def test_programs_are_told_apart_in_the_queue(server):
    for agent in ("webui", "script", "webui"):
        headers = {"User-Agent": agent}
        body = {"messages": USER, "max_tokens": 1}
        await server.http.post(f"{server.chat_url}/v1/chat/completions", json=body, headers=headers)
    first, second, third = (generation.request.client for generation in server.engine.generations)
    assert first == third != second


async def test_a_connection_outlives_a_refusal_with_a_body(server):
    """A refusal is sent before the body is read; the connection must be as good for the next request as any."""
    for _ in range(20):
        response = await server.http.post(f"{server.chat_url}/v1/none", content=b"x" * 100_000)
        assert response.status_code == 404
        assert "connection" not in response.headers
        assert (await server.http.get(f"{server.chat_url}/health")).status_code == 200
