"""Both ports over real HTTP, the chat port by the official OpenAI client."""

import asyncio
import json

import httpx
import pytest

from neuroscope_jax.features.events import FeatureActivation


async def test_chat_completions_openai_compat(server):
    answer = await server.openai.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "a"}], max_tokens=5
    )
    assert answer.id.startswith("chatcmpl-")
    assert answer.object == "chat.completion"
    assert answer.created >= server.state.started
    assert answer.model == "demo"
    assert [choice.index for choice in answer.choices] == [0]
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == "bcdef"
    assert answer.choices[0].finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (2, 5, 7)


async def test_chat_completions_raw_body_has_every_required_key(server):
    answer = (await server.chat(max_tokens=1)).json()
    assert set(answer) == {"id", "object", "created", "model", "choices", "usage"}
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "b", "refusal": None},
            "finish_reason": "length",
            "logprobs": None,
        }
    ]


async def test_chat_completions_streaming(server):
    response = await server.chat(stream=True, max_tokens=3)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    frames = response.text.split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2]]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "b"},
        {"content": "c"},
        {"content": "d"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 4 + ["length"]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert not any("usage" in chunk for chunk in chunks)


async def test_stream_usage_where_asked_for(server):
    stream = await server.openai.chat.completions.create(
        model="demo",
        messages=[{"role": "user", "content": "a"}],
        max_tokens=3,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices == []
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens, chunks[-1].usage.total_tokens) == (
        2,
        3,
        5,
    )


async def test_zero_token_answer(server):
    server.engine.script = [27]
    answer = (await server.chat()).json()
    assert answer["choices"][0]["message"]["content"] == ""
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 0
    streamed = (await server.chat(stream=True)).text
    assert streamed.count('"finish_reason":"stop"') == 1
    assert streamed.endswith("data: [DONE]\n\n")


async def test_models_list(server):
    models = await server.openai.models.list()
    assert [(m.id, m.object, m.owned_by) for m in models.data] == [("demo", "model", "neuroscope")]
    assert models.data[0].created == server.state.started
    assert (await server.openai.models.retrieve("demo")).id == "demo"


async def test_features_stream_sse(server):
    async with server.features() as events:
        await server.chat(max_tokens=2)
        async with asyncio.timeout(20):
            (name, data), (_, second), (last_name, last) = [await anext(events) for _ in range(3)]
    assert name == "feature_activation"
    assert data.pop("completion_id").startswith("chatcmpl-")
    assert data == {
        "token_index": 0,
        "token": "b",
        "layer": 3,
        "top_features": [
            {"index": 7, "label": "label 7", "activation": 3.0},
            {"index": 8, "label": "label 8", "activation": 2.0},
            {"index": 9, "label": "label 9", "activation": 1.0},
        ],
        "filtered_count": 0,
        "position": 1,
        "input_token": "a",
        "logprob": -0.5,
        "choice_index": 0,
    }
    assert (second["token_index"], second["token"], second["position"], second["input_token"]) == (1, "c", 2, "b")
    assert second["filtered_count"] == 1
    assert last_name == "generation_complete"
    assert (last["total_tokens"], last["model"], last["reason"]) == (2, "demo", "length")


async def test_features_event_ids_rise_and_data_is_one_line(server):
    async with server.http.stream("GET", f"{server.features_url}/v1/features/stream", timeout=20) as response:
        await server.chat(max_tokens=3)
        lines = []
        async for line in response.aiter_lines():
            lines.append(line)
            if line.startswith("data: ") and "total_tokens" in line:
                break
    ids = [int(line.removeprefix("id: ")) for line in lines if line.startswith("id: ")]
    assert ids == sorted(set(ids))
    assert len(ids) == 4
    assert {line.partition(":")[0] for line in lines} == {"retry", "event", "id", "data", ""}


async def test_features_labels_endpoint(server):
    body = (await server.http.get(f"{server.features_url}/v1/features/labels")).json()
    assert body["sae_id"] == "fake/layer_3/width_64/average_l0_3"
    assert body["width"] == 64
    assert {int(key): label for key, label in body["labels"].items()} == {i: f"label {i}" for i in range(64)}


async def test_features_labels_have_the_same_shape_without_detail(server):
    body = (await server.http.get(f"{server.features_url}/v1/features/labels?other=1")).json()
    assert list(body) == ["sae_id", "width", "labels"]


async def test_features_labels_with_source_and_score(server):
    plain = (await server.http.get(f"{server.features_url}/v1/features/labels")).json()
    body = (await server.http.get(f"{server.features_url}/v1/features/labels?detail=1")).json()
    details = body.pop("details")
    assert body == plain
    score = {
        "status": "scored",
        "balanced_accuracy": 0.58,
        "tpr": 0.66,
        "tnr": 0.5,
        "standard_error": 0.06,
        "low_confidence": True,
        "n_active": 50,
        "n_silent": 20,
        "n_hard": 10,
        "n_failed": 1,
        "judge": "judge-1",
    }
    known = {"status": "labelled", "confidence": "high", "model": "labeller-1", "date": "2030-01-02"}
    assert details == {
        "1": {"source": "autointerp"},
        "2": {"source": "autointerp", **known, "score": score},
        "3": {"source": "numeric", "status": "dead", "reason": "never fired"},
    }


@pytest.mark.parametrize("query", ["detail=0", "detail=true", "detail=", "detail=1&detail=1", "detail=2"])
async def test_features_labels_with_an_unknown_detail(server, query):
    response = await server.http.get(f"{server.features_url}/v1/features/labels?{query}")
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "detail")
    assert "expected 1" in error["message"]


async def test_features_stream_no_generation(start_server):
    server = await start_server(heartbeat_seconds=0.01)
    async with server.http.stream("GET", f"{server.features_url}/v1/features/stream", timeout=20) as response:
        lines = response.aiter_lines()
        quiet = [await anext(lines) for _ in range(12)]
        assert set(quiet) == {"retry: 2000", ": heartbeat", ""}
        await server.chat(max_tokens=1)
        async for line in lines:
            if line.startswith("event: "):
                assert line == "event: feature_activation"
                break


async def test_features_sync_with_tokens(server):
    async with server.features() as events:
        stream = await server.openai.chat.completions.create(
            model="demo", messages=[{"role": "user", "content": "x"}], max_tokens=20, stream=True
        )
        texts = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices[0].delta.content]
        *activations, complete = await server.completion_events(events)
    assert [event["token_index"] for event in activations] == list(range(20))
    assert [event["token"] for event in activations] == texts
    assert complete["total_tokens"] == 20
    assert {event["completion_id"] for event in activations} == {complete["completion_id"]}


async def test_event_is_published_before_its_chunk(server, monkeypatch):
    order = []
    publish = server.state.broadcast.publish

    def record(event):
        if isinstance(event, FeatureActivation):
            order.append(("event", event.token))
        publish(event)

    monkeypatch.setattr(server.state.broadcast, "publish", record)
    server.engine.permits = 0
    stream = await server.openai.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "a"}], max_tokens=5, stream=True
    )
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            order.append(("chunk", chunk.choices[0].delta.content))
        server.engine.permit(1)
    assert order == [(kind, letter) for letter in "bcdef" for kind in ("event", "chunk")]


async def test_answers_of_concurrent_requests_do_not_mix(server):
    async with server.features() as events:
        prompts = "abcdefghijklmnop"
        answers = await asyncio.gather(
            *(server.chat(p, max_tokens=4, stream=i % 2 == 0) for i, p in enumerate(prompts))
        )
        by_id = {}
        for _ in prompts:
            for event in await server.completion_events(events):
                by_id.setdefault(event["completion_id"], []).append(event.get("token"))
    for i, prompt in enumerate(prompts):
        expected = [chr((ord(prompt) - 97 + k) % 26 + 97) for k in range(1, 5)]
        if i % 2 == 0:
            chunks = [json.loads(f[6:]) for f in answers[i].text.split("\n\n") if f.startswith("data: {")]
            text = [c["choices"][0]["delta"].get("content") or "" for c in chunks]
            completion_id = chunks[0]["id"]
        else:
            text = [answers[i].json()["choices"][0]["message"]["content"]]
            completion_id = answers[i].json()["id"]
        assert "".join(text) == "".join(expected)
        assert by_id[completion_id] == [*expected, None]


async def test_characters_split_over_tokens_come_whole(server):
    server.engine.script = [100 + byte for byte in "é🌍x".encode()]
    async with server.features() as events:
        stream = await server.openai.chat.completions.create(
            model="demo", messages=[{"role": "user", "content": "a"}], stream=True
        )
        texts = [chunk.choices[0].delta.content async for chunk in stream]
        *activations, _ = await server.completion_events(events)
    assert [text for text in texts if text] == ["é", "🌍", "x"]
    assert [event["token"] for event in activations] == ["", "é", "", "", "", "🌍", "x"]


async def test_unfinished_character_ends_as_replacement(server):
    server.engine.script = [0, 100 + 0xF0, 100 + 0x9F]
    answer = (await server.chat()).json()
    assert answer["choices"][0]["message"]["content"] == "a\ufffd"
    assert answer["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(("stop", "text", "tokens"), [("f", "bcde", 5), (["zz", "de"], "bc", 4), (["", "c"], "b", 2)])
async def test_stop_strings(server, stop, text, tokens):
    whole = (await server.chat(stop=stop, max_tokens=20)).json()
    streamed = await server.openai.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "a"}], stop=stop, max_tokens=20, stream=True
    )
    chunks = [chunk.choices[0] async for chunk in streamed]
    assert whole["choices"][0]["message"]["content"] == text
    assert "".join(chunk.delta.content or "" for chunk in chunks) == text
    assert whole["choices"][0]["finish_reason"] == chunks[-1].finish_reason == "stop"
    assert whole["usage"]["completion_tokens"] == tokens


async def test_stop_string_frees_the_engine(server, wait_until):
    server.engine.permits = 4
    await server.chat(stop="c", max_tokens=50)
    await wait_until(lambda: server.engine.finished == ["cancelled"])


async def test_text_held_for_a_stop_string_is_released_at_the_end(server):
    assert (await server.chat(stop="defz", max_tokens=5)).json()["choices"][0]["message"]["content"] == "bcdef"


async def test_logprobs(server):
    create = server.openai.chat.completions.create
    fields = {"model": "demo", "messages": [{"role": "user", "content": "a"}], "max_tokens": 2, "logprobs": True}
    whole = await create(**fields, top_logprobs=2)
    entries = whole.choices[0].logprobs.content
    assert [(e.token, e.bytes, e.logprob) for e in entries] == [("b", [98], -0.5), ("c", [99], -0.5)]
    assert [(t.token, t.bytes, t.logprob) for t in entries[0].top_logprobs] == [("b", [98], -0.5), ("c", [99], -1.5)]
    chunks = [chunk.choices[0] async for chunk in await create(**fields, stream=True)]
    streamed = [entry for chunk in chunks if chunk.logprobs for entry in chunk.logprobs.content]
    assert [(e.token, e.top_logprobs) for e in streamed] == [("b", []), ("c", [])]


async def test_logprobs_of_split_characters_join_by_bytes(server):
    server.engine.script = [100 + byte for byte in "🌍".encode()]
    answer = await server.openai.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "a"}], logprobs=True
    )
    entries = answer.choices[0].logprobs.content
    assert bytes(byte for entry in entries for byte in entry.bytes).decode() == "🌍"
    assert len(entries) == answer.usage.completion_tokens == 4


async def test_health_on_both_ports(server):
    for url in (server.chat_url, server.features_url):
        assert (await server.http.get(f"{url}/health")).json() == {
            "status": "ok",
            "model": "demo",
            "running": 0,
            "waiting": 0,
        }
        assert (await server.http.head(f"{url}/health")).status_code == 200
    await asyncio.to_thread(server.engine.close)
    for url in (server.chat_url, server.features_url):
        assert (await server.http.get(f"{url}/health")).status_code == 503
    assert (await server.chat()).json()["error"]["code"] == "engine_stopped"


async def test_localhost_by_both_families(server):
    port = httpx.URL(server.chat_url).port
    for host in ("127.0.0.1", "localhost", "[::1]"):
        try:
            response = await server.http.get(f"http://{host}:{port}/health")
        except httpx.ConnectError:
            assert host == "[::1]", "only the second family may be missing on a machine"
            pytest.skip("this machine has no ::1")
        assert response.status_code == 200


async def test_head_of_the_stream_ends_and_leaves_the_connection_usable(start_server):
    server = await start_server()
    async with asyncio.timeout(20):
        head = await server.http.head(f"{server.features_url}/v1/features/stream")
        assert head.status_code == 200
        assert head.headers["content-type"].startswith("text/event-stream")
        assert head.content == b""
        assert (await server.http.get(f"{server.features_url}/health")).status_code == 200
