"""The features stream as an EventSource uses it: resuming, following one completion, a key in the query."""

import asyncio
import json

import pytest

URL = "/v1/features/stream"


async def frames(server, query="", headers=None, until="generation_complete"):
    """(event, id, data) of each event up to one of a name, from a stream of its own."""
    found, fields = [], {}
    url = f"{server.features_url}{URL}{query}"
    async with asyncio.timeout(20), server.http.stream("GET", url, headers=headers or {}) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
                if fields["event"] == until:
                    return found
                fields = {}
    return found


async def answered(server, tokens, prompt="a"):
    """Let one answer be made; its id and the ids of its events."""
    async with server.http.stream("GET", f"{server.features_url}{URL}") as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "retry: 2000"
        completion_id = (await server.chat(prompt, max_tokens=tokens)).json()["id"]
        ids = []
        async for line in lines:
            if line.startswith("id: "):
                ids.append(int(line[4:]))
            if "total_tokens" in line:
                break
    return completion_id, ids


@pytest.mark.parametrize("by", ["header", "query", "both"])
async def test_a_reconnect_repeats_nothing_and_loses_nothing(server, by):
    _, ids = await answered(server, 20)
    headers = {"Last-Event-ID": str(ids[9])} if by != "query" else {}
    query = {"header": "", "query": f"?last_event_id={ids[9]}", "both": f"?last_event_id={ids[2]}"}[by]
    events = await frames(server, query, headers)
    assert [int(event_id) for _, event_id, _ in events] == ids[10:]
    assert [data["token_index"] for _, _, data in events[:-1]] == list(range(10, 20))


async def test_ids_that_are_none_are_ignored(server, wait_until):
    await server.chat(max_tokens=3)
    for bad in ("abc", "-1", "1e3", str(10**30), "", " ", "１２", "0x10", "1.5", "null"):
        await wait_until(lambda: server.state.broadcast.subscribers == 0)
        reading = asyncio.create_task(frames(server, "?last_event_id=" + bad))
        await wait_until(lambda: server.state.broadcast.subscribers == 1)
        await server.chat(max_tokens=1)
        assert [name for name, _, _ in await reading] == ["feature_activation", "generation_complete"], bad


async def test_an_id_of_another_run_starts_over_with_what_is_kept(server):
    _, ids = await answered(server, 3)
    events = await frames(server, "", {"Last-Event-ID": str(ids[0] - 10**6)})
    assert events[0] == ("reset", None, {"reason": "unknown_id", "dropped": None})
    assert [int(event_id) for _, event_id, _ in events[1:]] == ids


async def test_an_id_that_is_too_old_is_told_how_much_is_gone(start_server):
    server = await start_server(broadcast_buffer_size=5)
    await server.chat(max_tokens=10)
    first = server.state.broadcast.history.first_id
    events = await frames(server, "", {"Last-Event-ID": str(first + 1)})
    assert events[0] == ("reset", None, {"reason": "too_old", "dropped": 4})
    assert [int(event_id) for _, event_id, _ in events[1:]] == list(range(first + 6, first + 11))


async def test_following_one_completion_ends_with_it_and_is_not_begun_again(server):
    first, ids = await answered(server, 4)
    await answered(server, 4, "x")
    events = await frames(server, f"?completion_id={first}", until=None)
    assert [int(event_id) for _, event_id, _ in events] == ids
    query = f"{URL}?completion_id={first}"
    again = await server.http.get(server.features_url + query, headers={"Last-Event-ID": str(ids[-1])})
    assert (again.status_code, again.content) == (204, b"")
    rest = await frames(server, f"?completion_id={first}&last_event_id={ids[1]}", until=None)
    assert [int(event_id) for _, event_id, _ in rest] == ids[2:]


async def test_following_one_that_waits_for_its_turn(server, wait_until):
    server.engine.permits = 0
    requests = [asyncio.create_task(server.chat(prompt, max_tokens=2)) for prompt in "ax"]
    await wait_until(lambda: len(server.state.running) == 2)
    ids = [completion.id for completion in server.state.running]
    readings = [asyncio.create_task(frames(server, f"?completion_id={name}", until=None)) for name in ids]
    await wait_until(lambda: server.state.broadcast.subscribers == 2)
    server.engine.permit(4)
    await asyncio.gather(*requests)
    for name, events in zip(ids, await asyncio.gather(*readings), strict=True):
        assert [event for event, _, _ in events] == ["feature_activation"] * 2 + ["generation_complete"]
        assert {data["completion_id"] for _, _, data in events} == {name}


@pytest.mark.parametrize("how", ["stop", "length", "cancelled", "error"])
async def test_the_end_comes_with_its_reason(server, wait_until, how):
    server.engine.fail_at = 1 if how == "error" else None
    server.engine.permits = 1 if how == "cancelled" else None
    request = asyncio.create_task(server.chat(max_tokens=3, stop="c" if how == "stop" else None))
    await wait_until(lambda: server.state.broadcast.history.next_id > server.state.broadcast.history.first_id)
    (name,) = {event.completion_id for event in server.state.broadcast.history.since(0)}
    if how == "cancelled":
        request.cancel()
    *_, (event, _, data) = await frames(server, f"?completion_id={name}", until=None)
    assert (event, data["reason"]) == ("generation_complete", how)
    await asyncio.wait([request])


async def test_an_event_source_with_a_key(start_server):
    server = await start_server(api_key="sesame")
    assert (await server.http.get(f"{server.features_url}{URL}")).status_code == 401
    server.http.headers["Authorization"] = "Bearer sesame"
    await server.chat(max_tokens=1)
    del server.http.headers["Authorization"]
    events = await frames(server, "?api_key=sesame&last_event_id=1")
    assert [name for name, _, _ in events] == ["reset", "feature_activation", "generation_complete"]


async def test_readers_are_bounded(server, monkeypatch):
    monkeypatch.setattr("server.features.MAX_SUBSCRIBERS", 1)
    async with server.features():
        refused = await server.http.get(f"{server.features_url}{URL}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_readers")
        assert int(refused.headers["Retry-After"]) > 0


async def test_heartbeats_can_be_switched_off(start_server):
    server = await start_server(heartbeat_seconds=0)
    async with server.http.stream("GET", f"{server.features_url}{URL}") as response:
        lines = response.aiter_lines()
        assert [await anext(lines) for _ in range(2)] == ["retry: 2000", ""]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await anext(lines)
