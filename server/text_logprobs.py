"""The logprobs of POST /v1/completions: columns over the echoed prompt's tokens and the generated ones."""

import codecs
from collections.abc import Iterable, Iterator, Sequence

from neuroscope_jax.engine.requests import PromptScored
from server.prompts import Prompt
from server.schemas import TokenLogprob
from server.state import Tokenizer
from server.text_schemas import TextLogprobs
from server.tokens import bounded

Row = tuple[int, str, float | None, dict[str, float] | None]  # offset, token, logprob, alternatives


def prompt_rows(prompt: Prompt, scored: PromptScored, tokenizer: Tokenizer) -> Iterator[Row]:
    """A row for every token that was given. The very first of a sequence follows on nothing: it has no logprob."""
    offsets = _offsets(prompt.ids[prompt.first :], tokenizer)
    for at, offset in enumerate(offsets, start=prompt.first):
        token = tokenizer.token_text(prompt.ids[at])
        if at == 0:
            yield offset, token, None, None
            continue
        logprob = bounded(scored.logprobs[at - 1])
        top = {tokenizer.token_text(i): bounded(value) for i, value in reversed(scored.top_logprobs[at - 1])}
        yield offset, token, logprob, {token: logprob, **top}


def token_row(offset: int, entry: TokenLogprob) -> Row:
    """The row of a generated token: of two alternatives with one text the likelier."""
    top = {top.token: top.logprob for top in reversed(entry.top_logprobs)}
    return offset, entry.token, entry.logprob, {entry.token: entry.logprob, **top}


def columns(rows: Sequence[Row], with_alternatives: bool) -> TextLogprobs:
    """The rows as the API wants them."""
    return TextLogprobs(
        text_offset=[offset for offset, _, _, _ in rows],
        token_logprobs=[logprob for _, _, logprob, _ in rows],
        tokens=[token for _, token, _, _ in rows],
        top_logprobs=[top for _, _, _, top in rows] if with_alternatives else None,
    )


def _offsets(ids: Iterable[int], tokenizer: Tokenizer) -> Iterator[int]:
    """Where each token begins, in characters; control tokens count by their names."""
    decoder, at = codecs.getincrementaldecoder("utf-8")("replace"), 0
    for token_id in ids:
        yield at
        at += len(decoder.decode(tokenizer.token_bytes(token_id) or tokenizer.token_text(token_id).encode()))
