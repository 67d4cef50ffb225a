"""A corpus as token ids on disk."""

from pathlib import Path

import numpy as np
import pytest

from neuroscope_jax.corpus import tokenised
from neuroscope_jax.corpus.documents import Corpus, Document
from neuroscope_jax.corpus.tokenised import BEGINS_FILE, TOKENS_FILE, pieces, tokenise
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER

TEXTS = ["The capital of France.", "", "One two three\n" * 40, "<start_of_turn>user\nHi<end_of_turn>\n", "x" * 300]


@pytest.fixture(scope="module")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(DEMO_FOLDER / "model")


def corpus(texts: list[str]) -> Corpus:
    return Corpus("texts", "sha", len(texts), lambda: (Document(t, "here", i) for i, t in enumerate(texts)))


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest is another test's matter."""
    monkeypatch.setattr(Corpus, "__iter__", lambda self: self.read())


def test_documents_one_after_the_other(tokenizer: ChatTokenizer, tmp_path: Path) -> None:
    found = tokenise(corpus(TEXTS), tokenizer, tmp_path)
    for i, ids in enumerate(tokenizer.encode_documents(TEXTS)):
        assert found.tokens[found.begins[i] : found.begins[i + 1]].tolist() == ids


def test_what_is_there_is_not_written_again(tokenizer: ChatTokenizer, tmp_path: Path) -> None:
    first = tokenise(corpus(TEXTS), tokenizer, tmp_path)
    again = tokenise(corpus(["other"]), tokenizer, tmp_path)
    np.testing.assert_array_equal(again.tokens, first.tokens)


@pytest.mark.parametrize(("name", "size"), [(TOKENS_FILE, 7), (BEGINS_FILE, 0), (BEGINS_FILE, 90)])
def test_damaged_files_are_written_again(tokenizer: ChatTokenizer, tmp_path: Path, name: str, size: int) -> None:
    tokenise(corpus(["other"]), tokenizer, tmp_path)
    with (tmp_path / name).open("rb+") as file:
        file.truncate(size)
    assert len(tokenise(corpus(TEXTS), tokenizer, tmp_path).begins) == len(TEXTS) + 1


def test_long_documents_are_cut_at_lines_words_or_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenised, "PIECE", 10)
    assert list(pieces("one two\nthree four five")) == ["one two", "\nthree", " four five"]
    assert list(pieces("a" * 25)) == ["a" * 10, "a" * 10, "a" * 5]
    assert list(pieces("")) == [""]
    text = "".join(np.random.default_rng(0).choice(list("ab \n"), 999))
    assert "".join(pieces(text)) == text
    assert max(map(len, pieces(text))) <= 10


def test_pieces_of_a_document_stay_together(
    tokenizer: ChatTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenised, "PIECE", 50)
    monkeypatch.setattr(tokenised, "LOT", 80)
    found = tokenise(corpus(TEXTS), tokenizer, tmp_path)
    texts = [
        tokenizer.spelled_out(found.tokens[a:b].tolist())
        for a, b in zip(found.begins[:-1], found.begins[1:], strict=True)
    ]
    assert texts == TEXTS


def test_a_corpus_without_tokens_is_refused(tokenizer: ChatTokenizer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no text in its 2 documents"):
        tokenise(corpus(["", ""]), tokenizer, tmp_path)
