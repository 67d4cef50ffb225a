"""The prompts of POST /v1/completions: raw text or token ids, BOS in front, nothing else added."""

import dataclasses
from collections.abc import Sequence
from typing import cast

from server.errors import context_exceeded, invalid
from server.state import Tokenizer

Given = str | list[int]


@dataclasses.dataclass(frozen=True)
class Prompt:
    """What is fed in, and what of it was given: `echo` repeats that."""

    ids: tuple[int, ...]
    text: str
    first: int  # where in ids the given ones begin: behind a BOS that was put in front


def given_prompts(prompt: str | Sequence[str | int | list[int]] | None) -> list[Given]:
    """One or several prompts in any of OpenAI's four forms. Raises ApiError."""
    if prompt is None:
        raise invalid("prompt", "prompt is missing; expected a text, token ids, or a list of either.")
    if isinstance(prompt, str):
        return [prompt]
    kinds = {type(item) for item in prompt}
    if not prompt or [] in prompt:
        raise invalid("prompt", "prompt has an empty list; expected texts or token ids in it.", code="empty_array")
    if len(kinds) > 1:
        raise invalid("prompt", "prompt mixes texts, ids and lists; expected items of one kind.")
    return [cast(list[int], list(prompt))] if kinds == {int} else cast(list[Given], list(prompt))


def encode_prompt(given: Given, tokenizer: Tokenizer, context_length: int) -> Prompt:
    """Ids with one BOS, put in front where it is missing. A text that spells a control token gets the token.

    Raises ApiError for an unknown id and for a prompt that fills the context.
    """
    if isinstance(given, str):
        # To tokenize megabytes that cannot fit however they are cut would hold everybody up for seconds.
        if len(given) // tokenizer.longest_token >= context_length:
            least = len(given) // tokenizer.longest_token
            raise context_exceeded("prompt", context_length, f"at least {least}")
        ids = tokenizer.encode_raw(given)
    else:
        ids = _known(given, tokenizer)
    whole = ids if ids and ids[0] == tokenizer.bos_id else (tokenizer.bos_id, *ids)
    if len(whole) >= context_length:
        raise context_exceeded("prompt", context_length, len(whole))
    return Prompt(whole, given if isinstance(given, str) else tokenizer.spelled_out(ids), len(whole) - len(ids))


def _known(given: list[int], tokenizer: Tokenizer) -> tuple[int, ...]:
    for token_id in given:
        if token_id >= tokenizer.vocabulary_size:
            last = tokenizer.vocabulary_size - 1
            raise invalid("prompt", f"prompt: there is no token {token_id}; ids end at {last}.")
    return tuple(given)
