"""The demo's tokenizer: Gemma's ids and conventions, no text it cannot carry."""

import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from neuroscope_jax.demo.tokenizer import BOS, END_OF_TURN, EOS, NEWLINE, PAD, START_OF_TURN, UNK


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("<pad>", PAD),
        ("<eos>", EOS),
        ("<bos>", BOS),
        ("<unk>", UNK),
        ("<start_of_turn>", START_OF_TURN),
        ("<end_of_turn>", END_OF_TURN),
        ("\n", NEWLINE),
    ],
)
def test_control_tokens_have_gemmas_ids(words: Tokenizer, token: str, expected: int) -> None:
    assert words.token_to_id(token) == expected
    assert words.encode(token, add_special_tokens=False).ids == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "What is 12 + 7?",
        " two  spaces  ",
        "tab\tand\r\nline",
        "Grüße, naïve café",
        "日本語 и русский",
        "👩‍🚀🎉",
        "\x00\x7f",
        "don't",
    ],
)
def test_text_comes_back_as_it_was(words: Tokenizer, text: str) -> None:
    assert words.decode(words.encode(text).ids) == text


def test_random_unicode_comes_back_as_it_was(words: Tokenizer) -> None:
    rng = random.Random(0)
    for _ in range(200):
        codes = [rng.choice((rng.randrange(0xD800), rng.randrange(0xE000, 0x110000))) for _ in range(20)]
        text = "".join(chr(code) for code in codes if chr(code) != "▁")  # '▁' stands for the space, as in Gemma
        assert words.decode(words.encode(text, add_special_tokens=False).ids) == text


def test_digits_are_single_tokens_and_bos_comes_first(words: Tokenizer) -> None:
    assert words.encode("2026").tokens == ["<bos>", "2", "0", "2", "6"]


def test_unknown_letters_fall_back_to_their_bytes(words: Tokenizer) -> None:
    assert words.encode("語", add_special_tokens=False).tokens == ["<0xE8>", "<0xAA>", "<0x9E>"]


def test_transformers_renders_gemmas_turns(pair_model: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(pair_model)
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Bye"},
    ]
    text = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"
    )
    ours = Tokenizer.from_file(str(pair_model / "tokenizer.json"))
    assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode(text, add_special_tokens=False).ids


def test_the_template_refuses_a_system_turn(pair_model: Path) -> None:
    template = json.loads((pair_model / "tokenizer_config.json").read_text())["chat_template"]
    assert "System role not supported" in template
