"""Chat ids and text against transformers' apply_chat_template and decode, over a trained tokenizer like Gemma's."""

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, trainers
from transformers import PreTrainedTokenizerFast

from neuroscope_jax.models.chat import ChatTokenizer

CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
# The template of google/gemma-2-2b-it.
TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}"
    "{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"
)
# A template that neither trims nor ends its turns with a control token, and uses whitespace control.
UNTRIMMED = """{% for message in messages %}
    {% if message['role'] == 'user' %}
Q:{{ message['content'] }}
    {% else %}
A: {{ message['content'] }} <end_of_turn>
    {% endif %}
{% endfor %}
A:"""
CHATS = {
    "one turn": ["What is the capital of France?"],
    "three turns": ["Hello there", "Hello! How are you?", "the cat and the dog"],
    "spaces around": ["  \n two  spaces \t\n", "\n\n\nlines\n", " "],
    "empty": ["", "", "go"],
    "beyond the alphabet": ["你好 🌍 naïve \x07 é", "Ünï\ncode\r\n", "👩‍👩‍👧"],
    "starting with what the turn opening could merge with": ["user\nuser", "model\n", "\u2003wide\u2003"],
    "private-use characters": ["\ue0000\ue001 and \ue001", "\ue000", "x"],
    "angle brackets": ["<b>bold</b> <0x41> <end of turn>", "a < b > c", "<"],
}


@pytest.fixture(scope="module", params=[TEMPLATE, UNTRIMMED], ids=["gemma", "untrimmed"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BPE with byte fallback and no pre-tokenizer, so that merges cross words, lines and turn openings."""
    texts = [
        "user\nthe cat and the dog are at the capital of France",
        "model\nhello there, how are you?",
        "user\nuser\n",
    ]
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.Replace(" ", "▁")
    alphabet = [chr(code) for code in range(33, 127)]
    special = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256))]
    learner.train_from_iterator(
        texts * 3,
        trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    state = json.loads(learner.to_str())["model"]
    merges = [tuple(pair) for pair in state["merges"]]
    tokenizer = Tokenizer(models.BPE(state["vocab"], merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = learner.normalizer
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in CONTROL])
    path = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=request.param,
        **dict(zip(("pad_token", "eos_token", "bos_token", "unk_token"), CONTROL, strict=False)),
        additional_special_tokens=CONTROL[4:],
    ).save_pretrained(path)
    return path


@pytest.mark.parametrize("texts", CHATS.values(), ids=CHATS.keys())
def test_ids_are_those_of_apply_chat_template(folder: Path, texts: list[str]) -> None:
    roles = ["user", "assistant", "user"]
    oracle = PreTrainedTokenizerFast.from_pretrained(folder)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    expected = oracle.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    if expected[0] != oracle.bos_token_id:
        expected = [oracle.bos_token_id, *expected]  # the second template leaves BOS to the caller
    found = ChatTokenizer.load(folder).encode_chat(list(zip(roles, texts, strict=False)))
    assert found == tuple(expected)


@pytest.mark.parametrize("texts", CHATS.values(), ids=CHATS.keys())
def test_text_of_ids_is_that_of_transformers(folder: Path, texts: list[str]) -> None:
    oracle, ours = PreTrainedTokenizerFast.from_pretrained(folder), ChatTokenizer.load(folder)
    for text in texts:
        ids = oracle.encode(text, add_special_tokens=False)
        expected = oracle.decode([2, *ids, 5], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert ours.decode([2, *ids, 5]) == expected == text
