"""What of a chat request reaches the engine, and errors that are not the request's. (The rest: tests/api/cases.)"""

import asyncio
import json

import httpx
import openai
import pytest

from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError

USER = [{"role": "user", "content": "a"}]


def error_of(response):
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_sampling_options_reach_the_engine(server):
    options = {
        "temperature": 0.0,
        "top_p": 0.0,
        "top_k": 40,
        "seed": -(2**63),
        "presence_penalty": -2.0,
        "frequency_penalty": 2.0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    await server.chat(max_tokens=1, **options)
    del options["logprobs"]
    assert server.engine.generations[0].request.sampling == SamplingOptions(**options)


async def test_what_a_request_leaves_open_is_the_models(server):
    server.state.sampling = SamplingOptions(temperature=0.2, top_k=64)
    await server.chat(max_tokens=1, top_k=5)
    await server.chat(max_tokens=1, temperature=1, seed=3)
    first, second = (generation.request.sampling for generation in server.engine.generations)
    assert first == SamplingOptions(temperature=0.2, top_k=5)
    assert second == SamplingOptions(temperature=1, top_k=64, seed=3)


async def test_roles_as_the_tokenizer_gets_them(server, monkeypatch):
    seen = []
    encode = server.state.tokenizer.encode_chat
    monkeypatch.setattr(server.state.tokenizer, "encode_chat", lambda m: seen.append(m) or encode(m), raising=False)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "d"},
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "t"},
        {"role": "assistant"},
        {"role": "assistant", "content": ""},
    ]
    assert (await server.chat(messages=messages, max_tokens=1)).status_code == 200
    assert seen == [
        [
            ("system", "d"),
            ("system", "s"),
            ("user", "u"),
            ("assistant", ""),
            ("user", "t"),
            ("assistant", ""),
            ("assistant", ""),
        ]
    ]


async def test_model_by_the_last_part_of_its_id(start_server):
    server = await start_server()
    server.state.config = type(server.state.config)(model_id="google/gemma-2-2b-it")
    answer = (await server.chat(model="gemma-2-2b-it", max_tokens=1)).json()
    assert answer["model"] == "google/gemma-2-2b-it"


async def test_unknown_model(server):
    with pytest.raises(openai.NotFoundError) as caught:
        await server.openai.chat.completions.create(model="gpt-3.5-turbo", messages=USER)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert "'demo'" in caught.value.message


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/v1/v1/chat/completions", 404),
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/models/other", 404),
    ],
)
async def test_framework_errors_have_the_same_shape(server, method, path, status):
    for url in (server.chat_url, server.features_url):
        response = await server.http.request(method, url + path)
        assert response.status_code == (status if url == server.chat_url else 404)
        error_of(response)


async def test_body_that_is_too_large(server):
    reader, writer = await asyncio.open_connection(httpx.URL(server.chat_url).host, httpx.URL(server.chat_url).port)
    length = 17 * 2**20
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % length)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 413")
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


async def test_a_bug_is_told_without_its_details(server, monkeypatch, caplog):
    def fail(_):
        raise ZeroDivisionError("inner detail")

    monkeypatch.setattr(server.state.tokenizer, "encode_chat", fail, raising=False)
    response = await server.chat()
    assert response.status_code == 500
    assert error_of(response)["type"] == "server_error"
    assert "inner detail" not in response.text
    assert "inner detail" in caplog.text


async def test_error_that_only_the_template_finds(server, monkeypatch):
    def refuse(_):
        raise UserError("the chat template refuses these messages")

    monkeypatch.setattr(server.state.tokenizer, "encode_chat", refuse, raising=False)
    response = await server.chat()
    assert response.status_code == 400
    assert error_of(response)["param"] == "messages"


async def test_more_turns_than_the_context_has_room_for_are_refused_before_they_are_read(server, monkeypatch):
    monkeypatch.setattr(type(server.state.tokenizer), "encode_chat", None)
    messages = [{"role": role, "content": ""} for role in ["user", "assistant"] * 32]
    response = await server.chat(messages=messages)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert "at least 64 tokens" in response.json()["error"]["message"]


async def test_an_answer_does_not_repeat_megabytes(server):
    response = await server.chat(model="x" * 2_000_000)
    message = response.json()["error"]["message"]
    assert response.status_code == 404
    assert len(message) < 2_100
    assert message.startswith("The model 'xxx")
    assert message.endswith("does not exist here; this server has 'demo'.")
