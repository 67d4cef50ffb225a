"""What a chat request may say: refusals over HTTP in OpenAI's shape, accepted forms by what reaches the engine."""

import asyncio
import json

import httpx
import openai
import pytest

from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError

USER = [{"role": "user", "content": "a"}]


async def post(server, body, content_type="application/json"):
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    headers = {"Content-Type": content_type} if content_type else {}
    return await server.http.post(f"{server.chat_url}/v1/chat/completions", content=data, headers=headers)


def error_of(response):
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


REFUSED = [
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"top_p": 1.1}, "top_p"),
    ({"top_k": -1}, "top_k"),
    ({"top_k": 1025}, "top_k"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"frequency_penalty": -3}, "frequency_penalty"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": "5"}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"seed": 2**63}, "seed"),
    ({"seed": "x"}, "seed"),
    ({"n": 2}, "n"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"stop": ["1", "2", "3", "4", "5"]}, "stop"),
    ({"stop": 5}, "stop"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"response_format": "json"}, "response_format"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ({"tools": [{"type": "function"}], "tool_choice": "required"}, "tools"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"logit_bias": {"5": 1}}, "logit_bias"),
    ({"logit_bias": {"5": "x"}}, "logit_bias"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": {}}, "messages"),
    ({"messages": [None]}, "messages[0]"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{}]}, "messages[0]"),
    ({"messages": [*USER, {"role": "wizard", "content": "x"}]}, "messages[1].role"),
    ({"messages": [*USER, {"role": 5, "content": "x"}]}, "messages[1].role"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "system", "content": None}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED, ids=[json.dumps(fields)[:60] for fields, _ in REFUSED])
async def test_refused_with_the_field_named(server, fields, param):
    for stream in (False, True):
        response = await post(server, {"model": "demo", "messages": USER, "stream": stream, **fields})
        error = error_of(response)
        assert response.status_code == 400
        assert error["type"] == "invalid_request_error"
        assert error["param"] == param
    assert server.engine.generations == []


async def test_messages_empty_and_tools_in_words_that_clients_look_for(server):
    assert error_of(await post(server, {"messages": []}))["code"] == "empty_array"
    tools = {"messages": USER, "tools": [{"type": "function"}]}
    assert "does not support tools" in error_of(await post(server, tools))["message"]


@pytest.mark.parametrize("body", ['{"a":1,x}', "", "[]", "5", b"\xff\xfe", "[" * 100_000])
async def test_body_that_is_no_json_object(server, body):
    response = await post(server, body)
    assert response.status_code == 400
    assert error_of(response)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/x-www-form-urlencoded", 415),
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        (None, 415),
    ],
)
async def test_content_type(server, content_type, status):
    response = await post(server, {"messages": USER, "max_tokens": 1}, content_type)
    assert response.status_code == status
    if status != 200:
        assert "application/json" in error_of(response)["message"]


async def test_every_field_null_or_neutral(server):
    fields = {
        "model": None,
        "max_tokens": None,
        "max_completion_tokens": 3,
        "temperature": None,
        "top_p": None,
        "top_k": None,
        "n": 1,
        "seed": None,
        "stop": None,
        "stream": None,
        "stream_options": None,
        "logit_bias": {},
        "logprobs": None,
        "top_logprobs": None,
        "presence_penalty": 0,
        "frequency_penalty": None,
        "response_format": {"type": "text"},
        "tools": [],
        "tool_choice": "auto",
        "user": "",
    }
    response = await server.chat(**fields)
    assert response.json()["choices"][0]["message"]["content"] == "bcd"
    assert server.engine.generations[0].request.sampling == SamplingOptions()


async def test_unknown_fields_are_ignored(server):
    message = {"role": "user", "content": "a", "id": "m1", "metadata": {"x": 1}}
    extra = {"store": False, "metadata": {"a": "b"}, "service_tier": "auto", "chat_id": 7, "parallel_tool_calls": True}
    response = await server.chat(messages=[message], max_tokens=1, **extra)
    assert response.status_code == 200


async def test_tools_with_tool_choice_none(server):
    response = await server.chat(tools=[{"type": "function"}], tool_choice="none", max_tokens=1)
    assert response.status_code == 200


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


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [
        ({"max_completion_tokens": 5}, 5),
        ({"max_tokens": 7, "max_completion_tokens": 5}, 5),
        ({"max_tokens": 4, "max_completion_tokens": 5}, 4),
        ({"max_tokens": 100_000_000}, 62),
        ({}, 62),
    ],
)
async def test_limits_and_the_room_in_the_context(server, limits, tokens):
    answer = (await server.chat(**limits)).json()
    assert answer["usage"]["completion_tokens"] == tokens
    assert answer["choices"][0]["finish_reason"] == "length"


async def test_prompt_of_the_whole_context_is_refused(server):
    fits = await server.chat("a" * 62)
    assert fits.json()["usage"] == {"prompt_tokens": 63, "completion_tokens": 1, "total_tokens": 64}
    for stream in (False, True):
        response = await server.chat("a" * 63, stream=stream)
        error = error_of(response)
        assert response.status_code == 400
        assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
        assert "maximum context length is 64 tokens" in error["message"]
        assert "resulted in 64 tokens" in error["message"]


async def test_content_parts_equal_the_joined_string(server):
    parts = [{"type": "text", "text": "tell me"}, {"type": "text", "text": " a joke"}]
    await server.chat(messages=[{"role": "user", "content": parts}], max_tokens=1)
    await server.chat("tell me a joke", max_tokens=1)
    first, second = server.engine.generations
    assert first.request.prompt_ids == second.request.prompt_ids


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


@pytest.mark.parametrize("name", ["demo", "DEMO", "", None])
async def test_model_names_that_are_served(server, name):
    answer = (await server.chat(model=name, max_tokens=1)).json()
    assert answer["model"] == "demo"


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
