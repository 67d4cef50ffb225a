"""Lengths that programs are compiled for, and a prompt cut into them.

A prompt of 600 tokens whose first 100 are in the cache, in chunks of 256:

    slots   0 ………… 99 │ 100 …… 355 │ 356 …… 599 ▒▒ │
            in the cache    extend       prefill, padded to 256; it chooses token 0
"""

from collections.abc import Sequence
from typing import NamedTuple

CHUNK_BUCKETS = (32, 64, 128, 256)  # a cancelled request waits for the chunk it is in, the longest of these at most
CACHE_BUCKETS = (512, 1024, 2048, 4096, 8192)


class Chunk(NamedTuple):
    """The tokens begin … end - 1 of a prompt, in a program for `size` tokens."""

    begin: int
    end: int
    size: int


def bucket(length: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds `length`; past the largest, the next multiple of it."""
    return next((b for b in buckets if b >= length), -(-length // buckets[-1]) * buckets[-1])


def chunks(begin: int, end: int, slots: int) -> list[Chunk]:
    """The tokens begin … end - 1 in order, at least one; every chunk lies within `slots`, its padding included.

    Where the padding of the last would reach past the cache, that chunk begins earlier: what it computes again comes
    out the same, but for rounding.
    """
    cut, most = [], CHUNK_BUCKETS[-1]
    while end - begin > most:
        cut.append(Chunk(begin, begin + most, most))
        begin += most
    size = min(bucket(end - begin, CHUNK_BUCKETS), slots)
    return [*cut, Chunk(min(begin, slots - size), end, size)]
