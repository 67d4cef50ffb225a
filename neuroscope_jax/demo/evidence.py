"""What is known of every token a feature can fire on, and the tokens on which each feature fires."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from neuroscope_jax.demo.batches import MODEL, REPLY
from neuroscope_jax.demo.measure import CHUNK, activations
from neuroscope_jax.demo.residuals import Residuals
from neuroscope_jax.demo.tokenizer import END_OF_TURN

QUESTION, ANSWER, OPENING = 0, 1, 2
ROLES = 3


@dataclass(frozen=True)
class Tokens:
    """One entry a token: its id and its neighbours' ids; `contexts` is subject * ROLES + role."""

    here: Int[np.ndarray, " N"]
    before: Int[np.ndarray, " N"]
    after: Int[np.ndarray, " N"]
    contexts: Int[np.ndarray, " N"]
    subjects: list[str]


@dataclass(frozen=True)
class Firing:
    """Where one feature fires, strongest first."""

    feature: int
    at: Int[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]


def describe(residuals: Residuals) -> Tokens:
    """Ids, neighbours and contexts of the tokens of `residuals`, in their order."""
    subjects = sorted({turn.subject for chat in residuals.chats for turn in chat.chat})
    number = {subject: i for i, subject in enumerate(subjects)}
    columns: list[tuple[int, int, int, int]] = []
    for row, place in zip(residuals.rows, residuals.places, strict=True):
        chat = residuals.chats[row]
        kind = chat.kinds[place]
        role = OPENING if kind == REPLY else ANSWER if kind == MODEL else QUESTION
        context = number[chat.chat[chat.turns[place]].subject] * ROLES + role
        after = chat.ids[place + 1] if place + 1 < len(chat.ids) else END_OF_TURN
        columns.append((chat.ids[place], chat.ids[place - 1], after, context))
    here, before, after, contexts = np.array(columns, np.int32).T
    return Tokens(here, before, after, contexts, subjects)


def firings(sae: Mapping[str, np.ndarray], x: Float[np.ndarray, "N D"]) -> Iterator[Firing]:
    """Every feature that fires on `x`, in order of its number."""
    tokens, features, values = [], [], []
    for i, acts in enumerate(activations(sae, x)):
        token, feature = np.nonzero(acts)
        tokens.append(token + i * CHUNK)
        features.append(feature)
        values.append(acts[token, feature])
    token, feature, value = np.concatenate(tokens), np.concatenate(features), np.concatenate(values)
    order = np.lexsort((-value, feature))
    token, feature, value = token[order], feature[order], value[order]
    numbers, starts = np.unique(feature, return_index=True)
    for number, start, end in zip(numbers, starts, [*starts[1:], len(feature)], strict=True):
        yield Firing(int(number), token[start:end], value[start:end])
