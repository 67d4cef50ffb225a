"""From chats to arrays: token ids, what each token is, and batches of similar length."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from jaxtyping import Float, Int
from tokenizers import Tokenizer

from neuroscope_jax.demo.text import Chat, chats
from neuroscope_jax.demo.tokenizer import BOS, END_OF_TURN, NEWLINE, PAD, START_OF_TURN

CONTROL, USER, MODEL, REPLY = 0, 1, 2, 3  # REPLY: the newline before a reply, where its first word is chosen
LENGTHS = (32, 48, 64, 96, 128, 192, 256)
USER_WEIGHT = 0.1  # of a user's token in the loss, beside 1 for a token the model has to write
POOL = 4096


@dataclass(frozen=True)
class Encoded:
    """One chat as tokens. `kinds` says CONTROL, USER, MODEL or REPLY, `turns` which message, both one a token."""

    chat: Chat
    ids: list[int]
    kinds: list[int]
    turns: list[int]


@dataclass(frozen=True)
class Batch:
    """Right-padded rows; `weights` are those of predicting the token at the same place from those before it."""

    ids: Int[np.ndarray, "B T"]
    weights: Float[np.ndarray, "B T"]
    rows: list[Encoded]


def encode(chat: Chat, tokenizer: Tokenizer) -> Encoded:
    """BOS and the chat in turn format; the marks around a message are CONTROL, except the end of a model's turn."""
    ids, kinds, turns = [BOS], [CONTROL], [-1]
    for number, turn in enumerate(chat):
        text = tokenizer.encode(turn.text, add_special_tokens=False).ids
        role = tokenizer.encode(turn.role, add_special_tokens=False).ids
        kind = MODEL if turn.role == "model" else USER
        ids += [START_OF_TURN, *role, NEWLINE, *text, END_OF_TURN, NEWLINE]
        kinds += (
            [CONTROL] * (1 + len(role)) + [REPLY if kind == MODEL else CONTROL] + [kind] * len(text) + [CONTROL] * 2
        )
        turns += [number] * (len(role) + len(text) + 4)
    return Encoded(chat, ids, kinds, turns)


def pool(tokenizer: Tokenizer, seed: int, size: int = POOL, held_out: bool = False) -> list[Encoded]:
    """`size` chats of one seed, as tokens; the few that are longer than the longest batch are left out."""
    encoded = (encode(chat, tokenizer) for chat in islice(chats(seed, held_out), size))
    return [row for row in encoded if len(row.ids) <= LENGTHS[-1]]


def _batch(rows: list[Encoded], length: int, count: int) -> Batch:
    ids = np.full((count, length), PAD, np.int32)
    weights = np.zeros((count, length), np.float32)
    for i, row in enumerate(rows):
        n = len(row.ids)
        ids[i, :n] = row.ids
        kinds = np.array(row.kinds)
        ends = (ids[i, :n] == END_OF_TURN) & (np.roll(kinds, 1) == MODEL)
        weights[i, :n] = np.where((kinds == MODEL) | ends, 1.0, USER_WEIGHT)
    weights[:, 0] = 0.0
    return Batch(ids, weights, rows)


def batches(rows: list[Encoded], tokens: int, seed: int) -> Iterator[Batch]:
    """Batches of about `tokens` places in shuffled order, of rows of similar length: len(LENGTHS) shapes in all."""
    rng = np.random.default_rng(seed)
    lots: list[tuple[int, list[Encoded]]] = []
    for shortest, length in zip((0, *LENGTHS), LENGTHS, strict=False):
        fitting = [row for row in rows if shortest < len(row.ids) <= length]
        order = rng.permutation(len(fitting))
        size = max(1, tokens // length)
        lots += [(length, [fitting[i] for i in order[at : at + size]]) for at in range(0, len(fitting), size)]
    for i in rng.permutation(len(lots)):
        length, lot = lots[i]
        yield _batch(lot, length, max(1, tokens // length))
