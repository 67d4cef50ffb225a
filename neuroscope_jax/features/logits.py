"""Which tokens a feature makes likelier and unlikelier: its decoder row, read through the unembedding.

    W_dec row ─▶ × gain of the final norm ─▶ · every row of the embedding ─▶ less the mean ─▶ top and bottom k

A hint, not a measurement: what later blocks make of the direction is left out. The soft-cap keeps the order. Lists on
Neuronpedia are made without gain and mean.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.layers import matmul
from neuroscope_jax.models.weights import load_unembedding
from neuroscope_jax.pytree import PyTree
from neuroscope_jax.sae.formats import decoder_rows

SHOWN = 10  # tokens at each end
TOKENS_AT_ONCE = 8_192  # rows of the embedding in memory
FEATURES_AT_ONCE = 512  # multiplied with them together
FEATURES_HELD = 4_096  # whose decoder rows are in memory; the embedding is read once for these
UNUSED = re.compile(r"<unused\d+>")  # Gemma's names for ids that no text has


@dataclasses.dataclass(frozen=True)
class TokenScore:
    """One token, and by how much more than the average token it is raised by an activation of 1."""

    token_id: int
    text: str
    score: float


@dataclasses.dataclass(frozen=True)
class TokenScores:
    """The tokens that a feature raises most and lowers most, the outermost first."""

    top: list[TokenScore]
    bottom: list[TokenScore]


class Extremes(PyTree):
    """The k highest and lowest scores of each direction among the tokens seen so far, the outermost first."""

    top_ids: Int[Array, "n k"]
    top: Float[Array, "n k"]
    bottom_ids: Int[Array, "n k"]
    bottom: Float[Array, "n k"]
    total: Float[Array, "n 1"]  # of all scores

    @classmethod
    def empty(cls, directions: int, k: int) -> "Extremes":
        """Before the first token."""
        ids, far = jnp.full((directions, k), -1), jnp.full((directions, k), jnp.inf)
        return cls(top_ids=ids, top=-far, bottom_ids=ids, bottom=far, total=jnp.zeros((directions, 1)))


def token_scores(
    folder: Path, model: nn.Module, sae_path: Path, tokenizer: ChatTokenizer, features: Sequence[int]
) -> Iterator[tuple[int, TokenScores]]:
    """Of each feature in turn. Of the model in `folder` only the final norm and the embedding are read.

    Raises UserError for files that are not what they should be, and for a feature that the SAE lacks.
    """
    params, table = load_unembedding(folder, model)
    gain, spoken = np.asarray(model.final_gain(params)), spoken_ids(tokenizer, table.shape[0])
    for at in range(0, len(features), FEATURES_HELD):
        some = features[at : at + FEATURES_HELD]
        found = top_tokens(decoder_rows(sae_path, some) * gain, table.blocks(TOKENS_AT_ONCE), spoken)
        if not np.isfinite(found.total).all():
            raise UserError(f"{folder}: the final norm or {table.key} is not finite; fetch the checkpoint again")
        for i, feature in enumerate(some):
            yield feature, _named(found, i, tokenizer)


def top_tokens(
    directions: Float[np.ndarray, "n D"],
    table: Iterable[Float[np.ndarray, "_ D"]],
    spoken: Bool[np.ndarray, " V"],
    k: int = SHOWN,
) -> Extremes:
    """Of each direction the k highest and lowest scores `directions @ table.T`, in float32, less their mean.

    Only `spoken` ids count, for the mean too. `table` comes in blocks of rows, the first being the largest.
    """
    k = min(k, int(spoken.sum()))
    lots = [directions[at : at + FEATURES_AT_ONCE] for at in range(0, len(directions), FEATURES_AT_ONCE)]
    states, first, size = [Extremes.empty(len(lot), k) for lot in lots], 0, 0
    for block in table:
        size = max(size, len(block))
        # One shape for all blocks, so that one program does.
        filled = jnp.asarray(np.pad(block, ((0, size - len(block)), (0, 0))))
        counted = np.pad(spoken[first : first + len(block)], (0, size - len(block)))
        states = [_with_tokens(*pair, filled, counted, first) for pair in zip(states, lots, strict=True)]
        first += len(block)
    empty = Extremes.empty(0, k)
    whole: Extremes = jax.tree.map(lambda *parts: np.concatenate(parts), empty, *states)
    mean = whole.total / max(int(spoken.sum()), 1)
    centred: Extremes = whole.replace(top=whole.top - mean, bottom=whole.bottom - mean)
    return centred


def spoken_ids(tokenizer: ChatTokenizer, count: int) -> Bool[np.ndarray, " V"]:
    """Which of `count` ids text can have: not control tokens, nor Gemma's unused ones, nor those without a token."""
    spoken = np.zeros(count, bool)
    for i in range(min(count, tokenizer.vocabulary_size)):
        spoken[i] = i not in tokenizer.control_ids and not UNUSED.fullmatch(tokenizer.token_text(i))
    return spoken


@jax.jit
def _with_tokens(
    state: Extremes,
    directions: Float[Array, "n D"],
    block: Float[Array, "v D"],
    counted: Bool[Array, " v"],
    first: Int[Array, ""],
) -> Extremes:
    """The state with the tokens of a block of the table, whose first has the id `first`."""
    scores = matmul(directions, block.astype(jnp.float32))
    ids = jnp.broadcast_to(first + jnp.arange(len(block)), scores.shape)

    def best(known: Float[Array, "n k"], known_ids: Int[Array, "n k"], sign: int) -> tuple[Array, Array]:
        found = jnp.concatenate([sign * known, jnp.where(counted, sign * scores, -jnp.inf)], axis=1)
        highest, places = jax.lax.top_k(found, known.shape[1])
        return sign * highest, jnp.take_along_axis(jnp.concatenate([known_ids, ids], axis=1), places, axis=1)

    top, top_ids = best(state.top, state.top_ids, 1)
    bottom, bottom_ids = best(state.bottom, state.bottom_ids, -1)
    total = state.total + jnp.sum(jnp.where(counted, scores, 0), axis=1, keepdims=True)
    return Extremes(top_ids=top_ids, top=top, bottom_ids=bottom_ids, bottom=bottom, total=total)


def _named(found: Extremes, number: int, tokenizer: ChatTokenizer) -> TokenScores:
    def side(ids: np.ndarray | Array, scores: np.ndarray | Array) -> list[TokenScore]:
        both = zip(ids[number].tolist(), scores[number].tolist(), strict=True)
        return [TokenScore(i, tokenizer.token_text(i), score) for i, score in both]

    return TokenScores(side(found.top_ids, found.top), side(found.bottom_ids, found.bottom))
