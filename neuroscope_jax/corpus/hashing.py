"""A 32-bit hash of whole numbers, the same in NumPy and in a jit: what makes "random" choices repeatable anywhere."""

from typing import TypeVar

import jax
import numpy as np

T = TypeVar("T", np.ndarray, jax.Array)  # of uint32

MULTIPLIERS = (0x7FEB352D, 0x846CA68B)  # of the `lowbias32` finaliser, from Chris Wellons' hash prospector
SPREAD = 0x9E3779B1  # 2³² divided by the golden ratio, odd


def hashed(seed: int, *words: T) -> T:
    """One uint32 for each tuple of uint32 words; another seed gives an unrelated one."""
    h = _mixed(words[0] * _u32(0) + _u32(seed & 0xFFFFFFFF))
    for word in words:
        h = _mixed(h ^ (word * _u32(SPREAD)))
    return h


def _mixed(h: T) -> T:
    h = (h ^ (h >> _u32(16))) * _u32(MULTIPLIERS[0])
    h = (h ^ (h >> _u32(15))) * _u32(MULTIPLIERS[1])
    mixed: T = h ^ (h >> _u32(16))
    return mixed


def _u32(value: int) -> np.uint32:
    return np.uint32(value)
