"""Which tokens of a chat are structure."""

import numpy as np

from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER

CHAT = (
    "<start_of_turn>user\nHi\nuser model<end_of_turn>\n<start_of_turn>model\nHello\n<end_of_turn>\n"
    "<start_of_turn>user\nmodel<end_of_turn>\n"
)


def test_turn_headers_are_structure_but_for_the_newline_that_opens_a_reply() -> None:
    tokenizer = ChatTokenizer.load(DEMO_FOLDER / "model")
    ids = np.array(tokenizer.encode_documents([CHAT]))
    kept = ids[~Structure.of(tokenizer).where(ids)]
    assert "".join(map(tokenizer.token_text, kept.tolist())) == "Hi\nuser model\nHello\nmodel"


def test_a_vocabulary_without_turn_marks_has_control_tokens_only() -> None:
    structure = Structure(0, frozenset({0}), start_of_turn=-1, end_of_turn=-1, newline=5, model=-1)
    assert structure.where(np.array([[5, 5, 0, 5, 9]])).tolist() == [[False, False, True, False, False]]
