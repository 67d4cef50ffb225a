"""Prompts of random ids: the weights are random too, so text would mean nothing."""

import numpy as np

from benchmarks.shapes import SHAPES

BOS = 2
FIRST_ID = 10  # those before are control tokens


def prompt(shape: str, length: int, variant: int = 0) -> tuple[int, ...]:
    """The same ids for the same shape, length and variant, BOS first.

    Variants have nothing but BOS in common, so that no program can reuse what it has kept of another one.
    """
    return (BOS, *text(shape, length - 1, length, variant))


def text(shape: str, length: int, *seed: int) -> tuple[int, ...]:
    """Ids of no control token that depend on the seed."""
    ids = np.random.default_rng(seed).integers(FIRST_ID, SHAPES[shape].model.vocab_size, length)
    return tuple(ids.tolist())
