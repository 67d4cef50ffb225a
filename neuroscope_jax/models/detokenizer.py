"""Token ids back to text, a token at a time, whole characters only."""

import codecs
import functools
import json
import re
from collections.abc import Callable, Collection

from tokenizers import Tokenizer

from neuroscope_jax.errors import UserError

# Decoders whose output for a sequence is the concatenation of their outputs for its tokens.
CONCATENATING = {"Sequence", "Replace", "ByteFallback", "Fuse"}
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_table(tokenizer: Tokenizer, silent: Collection[int], name: str) -> Callable[[int], bytes]:
    """A function from a token's id to the UTF-8 bytes it adds; none for `silent` ids and ids outside the vocabulary.

    Raises UserError for a tokenizer whose tokens do not simply join; `name` is the checkpoint's, for that message.
    """
    decoder = tokenizer.decoder
    types = _decoder_types(tokenizer)
    if types - CONCATENATING:
        odd = ", ".join(sorted(types - CONCATENATING))
        raise UserError(
            f"{name}: tokenizer.json has a decoder of type {odd}; known: {', '.join(sorted(CONCATENATING))}"
        )

    @functools.cache
    def token_bytes(token_id: int) -> bytes:
        token = tokenizer.id_to_token(token_id)
        if token is None or token_id in silent:
            return b""
        byte = BYTE_TOKEN.fullmatch(token) if "ByteFallback" in types else None
        if byte:
            return bytes.fromhex(byte[1])
        return (decoder.decode([token]) if decoder else token).encode()

    return token_bytes


class IncrementalDetokenizer:
    """Ids in, characters out; bytes of a character not complete yet are held back. The work for an id is constant."""

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The characters this token completes, often none or several."""
        return self._decoder.decode(self._token_bytes(token_id))

    def flush(self) -> str:
        """What is left at the end of an answer: U+FFFD for a character that was never completed."""
        return self._decoder.decode(b"", final=True)


def _decoder_types(tokenizer: Tokenizer) -> set[str]:
    decoder = json.loads(tokenizer.to_str())["decoder"] or {"type": "Fuse"}
    return {decoder["type"], *(part["type"] for part in decoder.get("decoders", []))}
