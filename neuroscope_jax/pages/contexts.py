"""An example's context in the pieces that a page draws: each with its text and how strongly the feature fires there.

A piece is a token, or the few tokens that spell one character together.
"""

import codecs
import dataclasses
import functools
from collections.abc import Sequence

from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.pages.examples import Example


@dataclasses.dataclass(frozen=True)
class Context:
    """The pieces of a context in order."""

    texts: list[str]
    activations: list[float]
    at: int  # of the piece that the example is about


def plain(example: Example) -> Context:
    """What is before the token, the token and what is after it; only the token's own activation is known."""
    return Context([example.before, example.token, example.after], [0.0, example.activation, 0.0], 1)


class Pieces:
    """Cuts contexts into pieces."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        self._text = functools.cache(self._whole_text)

    def shaded(self, example: Example, activations: Sequence[float]) -> Context:
        """The context with one activation a token, as they are for `example.ids`."""
        texts: list[str | None] = [self._text(i) for i in example.ids]
        if None not in texts:
            return Context([text for text in texts if text is not None], list(activations), example.at)
        found = self._joined(example.ids)
        strongest = [max(activations[first:last]) for _, first, last in found]
        at = next(i for i, (_, first, last) in enumerate(found) if first <= example.at < last)
        return Context([text for text, _, _ in found], strongest, at)

    def _whole_text(self, token: int) -> str | None:
        """None for a token that holds parts of a character."""
        if token in self._tokenizer.control_ids:
            return self._tokenizer.token_text(token)
        try:
            return self._tokenizer.token_bytes(token).decode("utf-8")
        except UnicodeDecodeError:
            return None

    def _joined(self, ids: list[int]) -> list[tuple[str, int, int]]:
        """(text, first, last + 1) of each piece; a character that is never finished becomes U+FFFD."""
        pieces, decoder = [], codecs.getincrementaldecoder("utf-8")("replace")
        text, first = "", 0
        for place, token in enumerate(ids):
            whole = self._text(token)
            text += decoder.decode(self._tokenizer.token_bytes(token)) if whole is None else ""
            if whole is not None:
                text += decoder.decode(b"", final=True)
                if place > first:
                    pieces.append((text, first, place))
                text, first = whole, place
            if not decoder.getstate()[0]:
                pieces.append((text, first, place + 1))
                text, first = "", place + 1
        if first < len(ids):
            pieces.append((text + decoder.decode(b"", final=True), first, len(ids)))
        return pieces
