"""The main job as a user meets it: chat on one port, features on the other, the process started by its command."""

import itertools
import json

import httpx

from tests.running_server import EXIT_SECONDS, running

GREETING = "Hello, how are you?"
CAPITAL = "What is the capital of France?"
PLACE_WORDS = (
    "capital",
    "countr",
    "cit",
    "place",
    "geograph",
    "nation",
    "france",
    "french",
    "paris",
    "europe",
    "locat",
)


def completion_events(events):
    """The events up to the next generation_complete: (activations, complete)."""
    activations = []
    for name, data in events:
        if name == "generation_complete":
            return activations, data
        assert name == "feature_activation"
        activations.append(data)
    raise AssertionError("the features stream ended")


def test_inference_produces_features(server):
    with server.features() as events:
        answer = server.chat(GREETING)
        activations, complete = completion_events(events)
    assert len(activations) == answer.usage.completion_tokens == complete["total_tokens"] > 0
    for index, event in enumerate(activations):
        assert event["token_index"] == index
        assert isinstance(event["token"], str)
        assert isinstance(event["layer"], int)
        assert event["filtered_count"] >= 0
        assert 0 < len(event["top_features"]) <= 10
        strengths = [feature["activation"] for feature in event["top_features"]]
        assert strengths == sorted(strengths, reverse=True)
        assert strengths[-1] > 0
        assert all(feature["label"] and feature["index"] >= 0 for feature in event["top_features"])


def test_feature_activations_are_plausible(server):
    with server.features() as events:
        answer = server.chat(CAPITAL)
        activations, _ = completion_events(events)
    assert "Paris" in answer.choices[0].message.content
    labels = {feature["label"].lower() for event in activations for feature in event["top_features"]}
    if any(not label.startswith("feature_") for label in labels):
        assert any(word in label for word in PLACE_WORDS for label in labels), labels


def test_features_sync_with_tokens(server):
    with server.features() as events:
        chunks = [chunk.choices[0].delta.content for chunk in server.chat(CAPITAL, stream=True)]
        activations, complete = completion_events(events)
    indices = [event["token_index"] for event in activations]
    assert indices == list(range(complete["total_tokens"]))
    shown = [event["token"] for event in activations if event["token"]]
    assert shown == [text for text in chunks if text], "one chunk a token, the same text"
    positions = [event["position"] for event in activations]
    assert all(after == before + 1 for before, after in itertools.pairwise(positions))


def test_full_workflow(server):
    with server.features() as events:
        for prompt in (CAPITAL, GREETING):
            chunks = list(server.chat(prompt, stream=True, stream_options={"include_usage": True}))
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            activations, complete = completion_events(events)
            assert len(activations) == chunks[-1].usage.completion_tokens == complete["total_tokens"]
            assert len(text.split()) > 1
            assert text.isprintable() or "\n" in text
            assert chunks[-2].choices[0].finish_reason == complete["reason"]
    assert {event["completion_id"] for event in activations} == {chunks[0].id}


def test_labels_cover_every_feature_that_fires(server):
    body = httpx.get(f"{server.features_url}/v1/features/labels").json()
    assert len(body["labels"]) == body["width"]
    with server.features() as events:
        server.chat(GREETING)
        activations, _ = completion_events(events)
    for feature in (feature for event in activations for feature in event["top_features"]):
        assert body["labels"][str(feature["index"])] == feature["label"]


def test_same_greedy_answer_plain_streamed_and_again(server):
    plain = server.chat(CAPITAL).choices[0].message.content
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in server.chat(CAPITAL, stream=True))
    assert plain == streamed == server.chat(CAPITAL).choices[0].message.content


def test_sampled_answers_follow_the_seed(server):
    def answer(seed):
        return server.chat("Tell me a short story.", temperature=1.5, seed=seed).choices[0].message.content

    assert answer(7) == answer(7)
    assert len({answer(seed) for seed in (1, 2, 3, 4)}) > 1


def test_stop_string_and_system_message(server):
    whole = server.chat(CAPITAL).choices[0].message.content
    stop = whole.split()[1]
    cut = server.chat(CAPITAL, stop=[stop])
    assert cut.choices[0].message.content == whole[: whole.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": CAPITAL}]
    assert server.openai.chat.completions.create(model=server.model, messages=messages, max_tokens=8).choices


def test_logprobs_are_of_the_tokens_in_the_events(server):
    with server.features() as events:
        choice = server.chat(CAPITAL, logprobs=True, top_logprobs=3, max_tokens=5).choices[0]
        activations, _ = completion_events(events)
    entries = choice.logprobs.content
    assert [entry.logprob for entry in entries] == [event["logprob"] for event in activations]
    assert all(entry.top_logprobs[0].token == entry.token for entry in entries), "greedy takes the likeliest"
    assert b"".join(bytes(entry.bytes) for entry in entries).decode() == choice.message.content
    assert json.loads(choice.model_dump_json())["finish_reason"] in ("length", "stop")


def test_sigterm_in_the_middle_of_an_answer(tmp_path):
    """The engine is at work, a features reader listens; the process ends by itself with status 0."""
    with running("demo", tmp_path) as server, server.features() as events:
        stream = server.chat("Tell me a story about a dog.", stream=True, max_tokens=900, temperature=2.0, seed=1)
        next(stream)
        server.process.terminate()
        assert server.process.wait(EXIT_SECONDS) == 0
        assert list(events)[-1][0] == "generation_complete"
