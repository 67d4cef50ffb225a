"""Text out of ids, a token at a time."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.chat import ChatTokenizer

BYTE = 6  # id of byte 0
FIRST = BYTE + 256  # id of ' '


def pushed(chat: ChatTokenizer, ids: list[int]) -> list[str]:
    """What each token delivers, and then the flush."""
    detokenizer = chat.detokenizer()
    return [*(detokenizer.push(i) for i in ids), detokenizer.flush()]


def oracle(ids: list[int]) -> str:
    """The bytes of the whole answer, decoded at once."""
    letters = [b" ", *(bytes([code]) for code in range(33, 127)), b"\n", b"ab", b" ab"]
    table = [*[b""] * BYTE, *(bytes([b]) for b in range(256)), *letters]
    return b"".join(table[i] for i in ids).decode("utf-8", "replace")


def test_a_character_comes_with_its_last_byte(chat: ChatTokenizer) -> None:
    ids = [BYTE + b for b in "é🌍".encode()]
    assert pushed(chat, ids) == ["", "é", "", "", "", "🌍", ""]


def test_ordinary_text_is_never_held_back(chat: ChatTokenizer) -> None:
    ids = chat.encode_text(" ab\n\n  x ab")
    assert pushed(chat, ids) == [" ab", "\n", "\n", " ", " ", "x", " ab", ""]


def test_bytes_known_to_be_wrong_are_replaced_at_once_and_unfinished_ones_at_the_end(chat: ChatTokenizer) -> None:
    x = FIRST + ord("x") - 32
    assert pushed(chat, [BYTE + 0xF0, x, BYTE + 0xFF, BYTE + 0xE4]) == ["", "\ufffdx", "\ufffd", "", "\ufffd"]


def test_control_tokens_and_ids_outside_the_vocabulary_add_nothing(chat: ChatTokenizer) -> None:
    assert pushed(chat, [2, 4, FIRST + 33, 5, 1, 50_000]) == ["", "", "A", "", "", "", ""]


@pytest.mark.parametrize("seed", range(30))
def test_random_ids_join_to_the_text_of_the_whole(chat: ChatTokenizer, seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = range(FIRST + 98)
    multi_byte = [BYTE + b for b in "é你🌍\u200d".encode()]  # whole characters come up often enough
    ids = [rng.choice(multi_byte) if rng.random() < 0.6 else rng.choice(vocabulary) for _ in range(300)]
    assert "".join(pushed(chat, ids)) == chat.decode(ids) == oracle(ids)


@pytest.mark.parametrize("text", [" leading", "  two", "\n\n", "a\tb", "👩‍👩‍👧 你好", "naïve ▁", ""])
def test_text_survives_the_round_trip(chat: ChatTokenizer, text: str) -> None:
    expected = text.replace("▁", " ")  # the format's own sign for a space cannot come back as itself
    assert "".join(pushed(chat, chat.encode_text(text))) == expected


def test_a_decoder_whose_tokens_do_not_simply_join_is_refused(tokenizer_folder: Callable[..., Path]) -> None:
    folder = tokenizer_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(UserError, match="decoder of type Strip"):
        ChatTokenizer.load(folder)
