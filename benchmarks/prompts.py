"""Prompts of random ids: the weights are random too, so text would mean nothing."""

import numpy as np

from benchmarks.shapes import SHAPES

BOS = 2
FIRST_ID = 10  # those before are control tokens


def prompt(shape: str, length: int, number: int = 0) -> tuple[int, ...]:
    """The same ids for the same shape, length and number, BOS first; of another number nothing else is the same."""
    ids = np.random.default_rng((length, number)).integers(FIRST_ID, SHAPES[shape].model.vocab_size, length - 1)
    return (BOS, *ids.tolist())
