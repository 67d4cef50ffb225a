"""How a prompt is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscope_jax.engine.chunks import CHUNK_BUCKETS, Chunk, bucket, chunks


@pytest.mark.parametrize(("length", "expected"), [(1, 4), (4, 4), (5, 8), (8, 8), (9, 16), (17, 24)])
def test_bucket(length: int, expected: int) -> None:
    assert bucket(length, (4, 8)) == expected


@pytest.mark.parametrize(
    ("begin", "end", "slots", "expected"),
    [
        (0, 1, 512, [Chunk(0, 1, 32)]),
        (100, 600, 1024, [Chunk(100, 356, 256), Chunk(356, 600, 256)]),
        (0, 512, 512, [Chunk(0, 256, 256), Chunk(256, 512, 256)]),
        (500, 510, 512, [Chunk(480, 510, 32)]),  # its padding would reach past the cache
        (0, 20, 24, [Chunk(0, 20, 24)]),  # a context shorter than any bucket
    ],
)
def test_cut(begin: int, end: int, slots: int, expected: list[Chunk]) -> None:
    assert chunks(begin, end, slots) == expected


@given(st.data())
def test_every_token_once_in_order_and_within_the_cache(data: st.DataObject) -> None:
    slots = data.draw(st.integers(1, 3000))
    end = data.draw(st.integers(1, slots))
    begin = data.draw(st.integers(0, end - 1))
    *before, last = chunks(begin, end, slots)
    assert [c.begin for c in before] == list(range(begin, begin + 256 * len(before), 256))
    assert all(c.end - c.begin == c.size for c in before)
    assert last.begin <= (before[-1].end if before else begin)
    assert last.end == end
    for chunk in (*before, last):
        assert 0 <= chunk.begin < chunk.end <= chunk.begin + chunk.size <= slots
        assert chunk.size in (*CHUNK_BUCKETS, slots)
