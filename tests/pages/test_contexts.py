"""Contexts in pieces: one a token, characters whole."""

import numpy as np
import pytest

from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.pages.contexts import Pieces, plain
from neuroscope_jax.pages.examples import Example


def example(ids: list[int], at: int) -> Example:
    return Example("top", None, 4.5, 1, 0, at, ids, at, True, False, "before ", "token", " after")


@pytest.mark.parametrize(
    "text", ["Hello there, Rome.\n", "東京 🙂 naïve שלום", "🙂🙂", "<start_of_turn>user\n🙂<end_of_turn>"]
)
def test_pieces_are_the_text(tokenizer: ChatTokenizer, text: str) -> None:
    ids = tokenizer.encode_documents([text])[0]
    activations = np.random.default_rng(0).random(len(ids)).tolist()
    pieces = Pieces(tokenizer)
    for at in range(len(ids)):
        found = pieces.shaded(example(ids, at), activations)
        assert "".join(found.texts) == tokenizer.spelled_out(ids)
        assert "\ufffd" not in "".join(found.texts)
        assert len(found.activations) == len(found.texts)
        assert max(found.activations) == max(activations)
        assert found.activations[found.at] >= activations[at]


def test_a_token_is_a_piece_and_a_character_is_one(tokenizer: ChatTokenizer) -> None:
    pieces = Pieces(tokenizer)
    ids = tokenizer.encode_documents(["Rome is"])[0]
    assert len(pieces.shaded(example(ids, 0), [1.0] * len(ids)).texts) == len(ids)
    smile = tokenizer.encode_documents(["a🙂"])[0]
    assert len(smile) > 3  # the tokenizer spells it byte by byte
    found = pieces.shaded(example(smile, len(smile) - 1), [0.0, 1.0, 3.0, *[2.0] * (len(smile) - 3)])
    assert (found.texts, found.activations, found.at) == (["a", "🙂"], [0.0, 3.0], 1)


def test_a_character_that_is_cut_is_marked(tokenizer: ChatTokenizer) -> None:
    smile = tokenizer.encode_documents(["a🙂b"])[0]
    first, last = smile[:3], smile[3:]
    for ids in (first, last, [*first, smile[0]]):
        for at in range(len(ids)):
            found = Pieces(tokenizer).shaded(example(ids, at), list(map(float, range(len(ids)))))
            assert "".join(found.texts) == tokenizer.spelled_out(ids)
            assert 0 <= found.at < len(found.texts) == len(found.activations)


def test_plain_knows_the_firing_token_only() -> None:
    found = plain(example([1, 2, 3], 1))
    assert (found.texts, found.activations, found.at) == (["before ", "token", " after"], [0, 4.5, 0], 1)
