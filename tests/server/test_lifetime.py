"""How answers and servers end: clients that leave, full queues, failing engines, shutdown, readers that stall."""

import asyncio
import json
import socket

import httpx
import openai
import pytest

USER = [{"role": "user", "content": "a"}]


async def open_stream(server, **fields):
    return await server.openai.chat.completions.create(model="demo", messages=USER, stream=True, **fields)


async def test_client_that_leaves_a_stream_frees_the_engine(server, wait_until):
    server.engine.permits = 3
    async with server.features() as events:
        stream = await open_stream(server)
        texts = [(await anext(stream)).choices[0].delta.content for _ in range(4)]
        await stream.close()
        await wait_until(lambda: server.engine.finished == ["cancelled"])
        *activations, complete = await server.completion_events(events)
    assert texts == ["", "b", "c", "d"]
    assert (len(activations), complete["total_tokens"], complete["reason"]) == (3, 3, "cancelled")
    server.engine.permit(1)
    assert (await server.chat(max_tokens=1)).status_code == 200


async def test_client_that_leaves_a_plain_request_frees_the_engine(server, wait_until):
    server.engine.permits = 0
    waiting = asyncio.create_task(server.chat())
    await wait_until(lambda: len(server.engine.generations) == 1)
    waiting.cancel()
    await wait_until(lambda: server.engine.finished == ["cancelled"])
    assert not server.state.running


async def test_clients_that_leave_right_after_sending_hold_nobody_up(server):
    """The end of the connection arrives with the request itself. None of them may keep the engine from the last."""
    server.engine.permits = 0
    url = httpx.URL(server.chat_url)
    for number in range(20):
        body = json.dumps({"messages": USER, "stream": number % 2 == 0}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection((url.host, url.port)) as leaving:
            leaving.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    last = asyncio.create_task(server.chat(max_tokens=1))
    await asyncio.sleep(0.1)
    server.engine.permit(1)
    async with asyncio.timeout(20):
        assert (await last).status_code == 200


async def test_a_body_that_never_comes_is_given_up(server, monkeypatch):
    monkeypatch.setattr("server.body.BODY_SECONDS", 0.1)
    url = httpx.URL(server.chat_url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(head + b"Content-Length: 100\r\n\r\n{")
    async with asyncio.timeout(20):
        assert b" 408 " in await reader.readline()
    writer.close()


async def test_client_that_leaves_the_queue_is_never_run(server, wait_until):
    server.engine.permits = 0
    first = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 1)
    second = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 2)
    second.cancel()
    await wait_until(lambda: server.engine.generations[1].cancelled)
    server.engine.permit(1)
    assert (await first).status_code == 200
    await wait_until(lambda: server.engine.finished == ["length", "cancelled"])


async def test_full_queue(start_server, wait_until):
    server = await start_server(queue_size=1)
    server.engine.permits = 0
    first = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 1 and server.engine._waiting == 0)
    second = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 2)
    refused = await server.chat(stream=True)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.json()["error"]["code"] == "queue_full"
    assert (await server.http.get(f"{server.chat_url}/v1/models")).status_code == 200
    server.engine.permit(2)
    assert [(await task).status_code for task in (first, second)] == [200, 200]


async def test_engine_failure_in_a_stream_is_an_error_frame(server):
    server.engine.fail_at = 2
    async with server.features() as events:
        stream = await open_stream(server)
        texts = []
        with pytest.raises(openai.APIError) as caught:
            async for chunk in stream:
                texts.append(chunk.choices[0].delta.content)
        *_, complete = await server.completion_events(events)
    assert texts == ["", "b", "c"]
    assert "secret" not in str(caught.value.body)
    assert (complete["total_tokens"], complete["reason"]) == (2, "error")
    raw = (await server.chat(stream=True)).text
    assert '"finish_reason":"stop"' not in raw
    assert json.loads(raw.strip().split("\n\n")[-1].removeprefix("data: "))["error"]["type"] == "server_error"


async def test_engine_failure_in_a_plain_answer(server):
    server.engine.fail_at = 0
    response = await server.chat()
    assert response.status_code == 500
    assert response.json()["error"]["type"] == "server_error"
    assert "secret" not in response.text


async def test_failure_between_engine_and_client_ends_the_answer(server, monkeypatch, caplog, wait_until):
    def fail(_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(server.state.labels, "text", fail, raising=False)
    response = await server.chat()
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "secret detail" in caplog.text
    await wait_until(lambda: len(server.engine.finished) == 1)


async def test_quiet_chat_stream_has_heartbeats(start_server):
    server = await start_server(heartbeat_seconds=0.01)
    server.engine.permits = 0
    body = {"messages": USER, "stream": True, "max_tokens": 2}
    async with server.http.stream("POST", f"{server.chat_url}/v1/chat/completions", json=body) as response:
        seen = []
        async for line in response.aiter_lines():
            seen.append(line)
            if seen.count(": heartbeat") == 3:
                server.engine.permit(2)
    assert [line for line in seen if '"content":"b"' in line]
    assert seen[-2:] == ["data: [DONE]", ""]


async def test_the_official_client_ignores_heartbeats(start_server):
    server = await start_server(heartbeat_seconds=0.001)
    server.engine.permits = 0
    stream = await open_stream(server, max_tokens=2)
    first = await anext(stream)
    asyncio.get_running_loop().call_later(0.05, server.engine.permit, 2)
    rest = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in [first, *rest]) == "bc"


async def test_stalled_features_reader_holds_nothing_up(start_server, monkeypatch):
    server = await start_server(broadcast_buffer_size=4)
    monkeypatch.setattr(type(server.engine), "context_length", 20_000)
    url = httpx.URL(server.features_url)
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with stalled:
        stalled.connect((url.host, url.port))
        stalled.sendall(b"GET /v1/features/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stalled.setblocking(False)
        loop = asyncio.get_running_loop()
        received = await loop.sock_recv(stalled, 64)
        answer = (await server.chat(max_tokens=15_000)).json()
        assert answer["usage"]["completion_tokens"] == 15_000
        while b"generation_complete" not in received[-4096:]:
            received += await loop.sock_recv(stalled, 65536)
    told = [json.loads(line[6:])["dropped"] for line in received.split(b"\n") if line.startswith(b'data: {"dropped"')]
    assert sum(told) > 0
    assert sum(told) + received.count(b"event: feature_activation") + received.count(b"event: generation_c") == 15_001


async def test_shutdown_with_open_streams(server, wait_until):
    server.engine.permits = 2
    plain = None
    async with server.features() as first, server.features() as second:
        stream = await open_stream(server)
        texts = [(await anext(stream)).choices[0].delta.content for _ in range(3)]
        plain = asyncio.create_task(server.chat())
        await wait_until(lambda: len(server.engine.generations) == 2)
        server.stop.set()
        with pytest.raises(openai.APIError, match="shutting down"):
            await anext(stream)
        for events in (first, second):
            names = [name async for name, _ in events]
            assert names == ["feature_activation"] * 2 + ["generation_complete"] * 2
    response = await plain
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "shutting_down"
    assert texts == ["", "b", "c"]
    async with asyncio.timeout(20):
        await asyncio.shield(server.task)
    with pytest.raises(httpx.ConnectError):
        await server.http.get(f"{server.chat_url}/health")


async def test_shutdown_cuts_off_a_reader_that_never_reads(start_server, monkeypatch):
    server = await start_server(broadcast_buffer_size=50_000)
    monkeypatch.setattr(type(server.engine), "context_length", 20_000)
    url = httpx.URL(server.features_url)
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect((url.host, url.port))
        stalled.sendall(b"GET /v1/features/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.get_running_loop().run_in_executor(None, stalled.recv, 64)
        await server.chat(max_tokens=15_000)
        server.stop.set()
        async with asyncio.timeout(20):
            await asyncio.shield(server.task)
