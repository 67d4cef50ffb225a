"""Several choices of one request: one after the other, each with its own events, none left behind."""

import asyncio

import openai
import pytest

USER = [{"role": "user", "content": "a"}]


async def events_of(server, events, choices):
    """The events up to the last choice's end, by completion_id."""
    found = {}
    for _ in range(choices):
        for event in await server.completion_events(events):
            found.setdefault(event["completion_id"], []).append(event)
    return found


async def test_every_choice_has_events_of_its_own(server):
    async with server.features() as events:
        answer = (await server.chat(n=3, max_tokens=2)).json()
        found = await events_of(server, events, 3)
    assert [choice["message"]["content"] for choice in answer["choices"]] == ["bc"] * 3
    assert list(found) == [answer["id"], f"{answer['id']}-1", f"{answer['id']}-2"]
    for index, of_choice in enumerate(found.values()):
        assert {event["choice_index"] for event in of_choice} == {index}
        assert [event["token_index"] for event in of_choice[:-1]] == [0, 1]
        assert (of_choice[-1]["total_tokens"], of_choice[-1]["reason"]) == (2, "length")


async def test_seeds_are_counted_up_so_that_choices_differ(server):
    await server.chat(n=3, seed=2**63 - 1, max_tokens=1)
    await server.chat(n=2, max_tokens=1)
    seeds = [generation.request.sampling.seed for generation in server.engine.generations]
    assert seeds == [2**63 - 1, 2**63, 2**63 + 1, None, None]


async def test_choices_of_several_prompts_repeat_their_seeds(server):
    await server.openai.completions.create(model="demo", prompt=["a", "b"], n=2, seed=7, max_tokens=1)
    requests = [generation.request for generation in server.engine.generations]
    assert [(request.prompt_ids[-1], request.sampling.seed) for request in requests] == [(0, 7), (0, 8), (1, 7), (1, 8)]


async def test_streamed_choices_carry_their_index(server):
    stream = await server.openai.chat.completions.create(model="demo", messages=USER, n=2, max_tokens=2, stream=True)
    chunks = [chunk.choices[0] async for chunk in stream]
    pieces = [(chunk.index, chunk.delta.content, chunk.finish_reason) for chunk in chunks]
    assert pieces == [
        (0, "", None), (1, "", None),
        (0, "b", None), (0, "c", None), (0, None, "length"),
        (1, "b", None), (1, "c", None), (1, None, "length"),
    ]  # fmt: skip


async def test_a_full_queue_does_not_break_off_what_has_begun(start_server, wait_until):
    server = await start_server(queue_size=1)
    server.engine.permits = 0
    several = asyncio.create_task(server.chat(n=3, max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 1)
    await wait_until(lambda: server.engine._waiting == 0)
    other = asyncio.create_task(server.chat(max_tokens=1))
    await wait_until(lambda: len(server.engine.generations) == 2)
    refused = await server.chat(max_tokens=1)
    assert refused.status_code == 429
    server.engine.permit(4)
    assert (await several).json()["usage"]["completion_tokens"] == 3
    assert (await other).status_code == 200


async def test_a_client_that_leaves_takes_the_choices_to_come_with_it(server, wait_until):
    server.engine.permits = 3
    waiting = asyncio.create_task(server.chat(n=5, max_tokens=2))
    await wait_until(lambda: len(server.engine.generations) == 2 and server.engine.permits == 0)
    waiting.cancel()
    await wait_until(lambda: server.engine.finished == ["length", "cancelled"])
    assert not server.state.running
    server.engine.permit(1)
    assert (await server.chat(max_tokens=1)).status_code == 200
    assert len(server.engine.generations) == 3


@pytest.mark.parametrize("fail_at", [0, 1])
async def test_a_choice_that_fails_ends_the_answer(server, fail_at):
    server.engine.fail_at = fail_at
    assert (await server.chat(n=2, max_tokens=3)).status_code == 500
    for create, prompt in (
        (server.openai.chat.completions.create, {"messages": USER}),
        (server.openai.completions.create, {"prompt": "a"}),
    ):
        with pytest.raises(openai.APIError, match="failed while working"):
            async for _ in await create(model="demo", n=2, max_tokens=3, stream=True, **prompt):
                pass
    assert len(server.engine.generations) == 3
    assert not server.state.running


async def test_raw_text_through_the_official_client(server):
    create = server.openai.completions.create
    answer = await create(model="demo", prompt="xa", max_tokens=3, logprobs=2, echo=False)
    assert answer.id.startswith("cmpl-")
    assert (answer.object, answer.choices[0].text, answer.choices[0].finish_reason) == (
        "text_completion",
        "bcd",
        "length",
    )
    logprobs = answer.choices[0].logprobs
    assert (logprobs.tokens, logprobs.text_offset) == (["b", "c", "d"], [0, 1, 2])
    assert logprobs.top_logprobs[0] == {"b": -0.5, "c": -1.5}
    async with server.features() as events:
        stream = await create(model="demo", prompt="a", max_tokens=2, stream=True)
        texts = [chunk.choices[0].text async for chunk in stream]
        *activations, complete = await server.completion_events(events)
    assert texts == ["b", "c", ""]
    assert [event["token"] for event in activations] == ["b", "c"]
    assert complete["completion_id"].startswith("cmpl-")


@pytest.mark.parametrize("max_tokens", [0, 2])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_choices_of_a_prompt_share_its_scores(server, max_tokens, stream):
    asked = {"model": "demo", "prompt": ["ab", "cde"], "n": 3, "echo": True, "logprobs": 0, "max_tokens": max_tokens}
    answer = await server.openai.completions.create(**asked, stream=stream)
    chunks = [chunk async for chunk in answer] if stream else [answer]
    found = {}
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        found.setdefault(choice.index, []).extend(choice.logprobs.token_logprobs if choice.logprobs else [])
    made = [-0.5] * max_tokens
    assert found == {i: [-1.0, -2.0, *made] if i < 3 else [-1.0, -2.0, -3.0, *made] for i in range(6)}
    scored = [
        generation.request.prompt_ids[1:] for generation in server.engine.generations if generation.request.score_prompt
    ]
    assert len(scored) == len(set(scored)) == 2
    assert len(server.engine.generations) == (6 if max_tokens else 2)
