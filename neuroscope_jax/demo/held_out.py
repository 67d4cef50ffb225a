"""Fifty questions in phrasings that training never used, the answers that count as right, and the asking."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
from tokenizers import Tokenizer

from neuroscope_jax.demo.text import Turn, render
from neuroscope_jax.demo.tokenizer import BOS, END_OF_TURN, EOS
from neuroscope_jax.models.cache import KVCache
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.weights import Params

QUESTIONS: list[dict[str, str | list[str]]] = json.loads(Path(__file__).with_name("held_out.json").read_text())
PROMPT_TOKENS, ANSWER_TOKENS = 64, 96


@partial(jax.jit, static_argnums=0)
def _step(
    model: Gemma2, params: Params, ids: Int[Array, "1 T"], start: Int[Array, ""], last: Int[Array, ""], cache: KVCache
) -> tuple[Int[Array, ""], KVCache]:
    """Read T tokens from position `start`; the likeliest token after place `last` of them."""
    positions = start + jnp.arange(ids.shape[1])[None]
    run: Any = partial(model.apply, {"params": params})
    hidden, cache = run(ids, positions, cache)
    row = jax.lax.dynamic_slice_in_dim(hidden, last, 1, axis=1)
    return jnp.argmax(run(row, method="logits")[0, 0]), cache


def greedy(model: Gemma2, params: Params, tokenizer: Tokenizer, question: str, limit: int = ANSWER_TOKENS) -> str:
    """The model's answer to one question, the likeliest token each time, at most `limit` tokens."""
    prompt = render((Turn("user", question, ""),)) + "<start_of_turn>model\n"
    ids = [BOS, *tokenizer.encode(prompt, add_special_tokens=False).ids]
    if len(ids) > PROMPT_TOKENS:
        raise ValueError(f"the question has {len(ids)} tokens, {PROMPT_TOKENS} fit")
    padded = jnp.asarray([ids + [0] * (PROMPT_TOKENS - len(ids))])
    cache = model.empty_cache(1, PROMPT_TOKENS + ANSWER_TOKENS)
    token, cache = _step(model, params, padded, jnp.int32(0), jnp.int32(len(ids) - 1), cache)
    answer: list[int] = []
    while int(token) not in (EOS, END_OF_TURN) and len(answer) < limit:
        answer.append(int(token))
        place = jnp.int32(len(ids) + len(answer) - 1)
        token, cache = _step(model, params, token[None, None], place, jnp.int32(0), cache)
    return str(tokenizer.decode(answer))


def is_right(answer: str, accepted: list[str]) -> bool:
    """Whether one of the accepted answers stands in the answer, as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(a)}(?!\w)", answer, re.IGNORECASE) for a in accepted)


def accuracy(model: Gemma2, params: Params, tokenizer: Tokenizer) -> tuple[float, list[tuple[str, str]]]:
    """Share of QUESTIONS answered rightly, and the (question, answer) pairs that were wrong."""
    wrong = []
    for item in QUESTIONS:
        answer = greedy(model, params, tokenizer, str(item["question"]))
        if not is_right(answer, list(item["answers"])):
            wrong.append((str(item["question"]), answer))
    return 1 - len(wrong) / len(QUESTIONS), wrong
