"""Raw text, several choices and logit_bias through the model that is served."""

import pytest

from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import model_folder

CAPITAL = "What is the capital of France?"
STORY = "Tell me a short story."


def rendered(question):
    return f"<start_of_turn>user\n{question}<end_of_turn>\n<start_of_turn>model\n"


def test_a_chat_written_out_as_raw_text_is_answered_the_same(server):
    chat = server.chat(CAPITAL, logprobs=True, top_logprobs=2)
    create = server.openai.completions.create
    raw = create(model=server.model, prompt=rendered(CAPITAL), temperature=0, max_tokens=48, logprobs=2, echo=False)
    assert raw.choices[0].text == chat.choices[0].message.content
    assert raw.usage == chat.usage
    entries = chat.choices[0].logprobs.content
    assert raw.choices[0].logprobs.tokens == [entry.token for entry in entries]
    assert raw.choices[0].logprobs.token_logprobs == [entry.logprob for entry in entries]


def test_an_answer_scored_as_a_prompt_has_the_logprobs_it_was_given_with(server):
    create = server.openai.completions.create
    answer = create(model=server.model, prompt=rendered(CAPITAL), temperature=0, max_tokens=5, logprobs=1).choices[0]
    whole = rendered(CAPITAL) + answer.text
    scored = create(model=server.model, prompt=whole, max_tokens=0, echo=True, logprobs=1).choices[0]
    count = len(answer.logprobs.tokens)
    assert scored.text == whole
    assert scored.logprobs.tokens[-count:] == answer.logprobs.tokens
    assert scored.logprobs.token_logprobs[-count:] == pytest.approx(answer.logprobs.token_logprobs, abs=0.05)
    ends = [*scored.logprobs.text_offset[1:], len(whole)]
    spelled = [whole[start:end] for start, end in zip(scored.logprobs.text_offset, ends, strict=True)]
    assert spelled == scored.logprobs.tokens


def test_streamed_raw_text_with_its_echo(server):
    fields = {"model": server.model, "prompt": rendered(CAPITAL), "temperature": 0, "max_tokens": 8, "echo": True}
    whole = server.openai.completions.create(**fields).choices[0].text
    pieces = [chunk.choices[0].text for chunk in server.openai.completions.create(**fields, stream=True)]
    assert "".join(pieces) == whole
    assert whole.startswith(rendered(CAPITAL)) and len(whole) > len(rendered(CAPITAL))


def test_choices_differ_and_each_can_be_had_again_by_its_seed(server):
    def texts(**fields):
        return [choice.message.content for choice in server.chat(STORY, temperature=1.5, **fields).choices]

    several = texts(n=3, seed=20)
    assert len(set(several)) > 1
    assert several == [text for seed in (20, 21, 22) for text in texts(seed=seed)]
    assert len(set(texts(n=3))) > 1


def test_a_token_that_is_banned_and_one_that_is_forced(server, config):
    tokenizer = ChatTokenizer.load(model_folder(config.model_id))
    first = server.chat(CAPITAL, logprobs=True, max_tokens=1).choices[0].logprobs.content[0].token
    banned = server.chat(CAPITAL, logprobs=True, max_tokens=1, logit_bias={tokenizer.single_token(first): -100})
    assert banned.choices[0].logprobs.content[0].token != first
    forced = server.chat(CAPITAL, max_tokens=3, logit_bias={tokenizer.single_token(first): 100})
    assert forced.choices[0].message.content == first * 3
