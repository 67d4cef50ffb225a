"""What goes wrong around a server, on purpose: the good request after it is answered all the same."""

import asyncio
import json
import random
import signal
import socket
import struct
import subprocess
import sys
import time

import httpx
import pytest

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset
REQUEST = b"GET /v1/features/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
READER = """
import socket, sys
with socket.socket() as reader:
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", int(sys.argv[1])))
    reader.sendall(sys.argv[2].encode())
    seen = b""
    while b"generation_complete" not in seen[-4096:]:
        seen += reader.recv(65536)
    print(seen.decode())
"""


async def good_answer(server):
    server.engine.fail_at = None
    return (await server.chat(max_tokens=3)).json()["choices"][0]["message"]["content"]


async def test_a_step_that_fails_at_a_random_token(server):
    drawn = random.Random(5)
    for stream in [False, True] * 5:
        server.engine.fail_at = at = drawn.randrange(20)
        async with server.features() as events:
            response = await server.chat(max_tokens=20, stream=stream)
            *activations, complete = await server.completion_events(events)
        assert (len(activations), complete["total_tokens"], complete["reason"]) == (at, at, "error")
        if stream:
            last = json.loads(response.text.strip().split("\n\n")[-1].removeprefix("data: "))
            assert last["error"]["type"] == "server_error"
        else:
            assert response.status_code == 500
        assert await good_answer(server) == "bcd"


async def test_a_reader_whose_socket_is_reset(server, wait_until):
    url = httpx.URL(server.features_url)
    server.engine.permits = 5
    async with server.features() as events:
        readers = []
        for _ in range(5):
            reader, writer = await asyncio.open_connection(url.host, url.port)
            writer.write(REQUEST)
            await reader.readuntil(b"retry: 2000\n\n")
            readers.append(writer)
        assert server.state.broadcast.subscribers == 6
        request = asyncio.create_task(server.chat(max_tokens=20))
        await wait_until(lambda: server.engine.permits == 0)
        for writer in readers:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        server.engine.permit(15)
        assert len(await server.completion_events(events)) == 21
        assert (await request).status_code == 200
        await wait_until(lambda: server.state.broadcast.subscribers == 1)


async def test_a_client_whose_socket_is_reset_frees_its_place(server, wait_until):
    url = httpx.URL(server.chat_url)
    server.engine.permits = 2
    body = json.dumps({"messages": [{"role": "user", "content": "a"}], "stream": True}).encode()
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await reader.readuntil(b'"content":"c"')
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
    await wait_until(lambda: server.engine.finished == ["cancelled"])
    server.engine.permits = None
    assert await good_answer(server) == "bcd"


async def test_a_reader_that_is_stopped_is_told_what_it_lost(start_server, monkeypatch, wait_until):
    server = await start_server(broadcast_buffer_size=3000)
    monkeypatch.setattr(type(server.engine), "context_length", 20_000)
    command = [sys.executable, "-c", READER, str(httpx.URL(server.features_url).port), REQUEST.decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            await wait_until(lambda: server.state.broadcast.subscribers == 1)
            process.send_signal(signal.SIGSTOP)
            async with server.features() as events:
                server.engine.permits = 0
                answer = asyncio.create_task(server.chat(max_tokens=15_000))
                for _ in range(15):  # no faster than the healthy reader reads
                    server.engine.permit(1000)
                    assert [(await anext(events))[0] for _ in range(1000)] == ["feature_activation"] * 1000
                assert len(await server.completion_events(events)) == 1
                assert (await answer).json()["usage"]["completion_tokens"] == 15_000
            process.send_signal(signal.SIGCONT)
            seen, _ = await asyncio.to_thread(process.communicate, timeout=20)
        finally:
            process.kill()
    told = [json.loads(line[6:])["dropped"] for line in seen.split("\n") if line.startswith('data: {"dropped"')]
    assert sum(told) > 0
    assert sum(told) + seen.count("event: feature_activation") + seen.count("event: generation_c") == 15_001
    await wait_until(lambda: server.state.broadcast.subscribers == 0)


@pytest.mark.parametrize("seconds", [400 * 86_400, -400 * 86_400])
async def test_a_clock_that_jumps_in_the_middle_of_an_answer(server, monkeypatch, wait_until, seconds):
    server.engine.permits = 3
    request = asyncio.create_task(server.chat(max_tokens=10, stream=True))
    await wait_until(lambda: server.engine.permits == 0)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)
    server.engine.permit(7)
    frames = (await request).text.split("\n\n")
    chunks = [json.loads(frame.removeprefix("data: ")) for frame in frames if frame.startswith("data: {")]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "bcdefghijk"
    assert len({chunk["created"] for chunk in chunks}) == 1
    ids = [event.id for event in server.state.broadcast.history.since(0)]
    assert ids == list(range(ids[0], ids[0] + 11))
    metrics = server.state.metrics.exposition().decode()
    waited = float(metrics.split("neuroscope_first_token_seconds_sum ")[1].split()[0])
    assert 0 <= waited < 3600
    server.engine.permits = None
    assert await good_answer(server) == "bcd"
