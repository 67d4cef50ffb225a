"""Which stretches of a corpus are read, and as which rows."""

import numpy as np
import pytest

from neuroscope_jax.corpus.samples import SHORTEST_TAIL, STRIDE, Samples, Texts, choose, rows
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.corpus.windows import PLACES, WIDTH

LENGTHS = [5, 0, STRIDE, STRIDE + SHORTEST_TAIL - 1, STRIDE + SHORTEST_TAIL, 10 * STRIDE + 3, 40 * STRIDE]
BEGINS = np.concatenate([[0], np.cumsum(LENGTHS)])
STRUCTURE = Structure(bos_id=2, control_ids=frozenset({1, 2}), start_of_turn=-1, end_of_turn=-1, newline=-1, model=-1)


def everything() -> Samples:
    return choose(BEGINS, 10**6, seed=3)


def test_all_stretches_are_there_but_for_short_tails() -> None:
    found = everything()
    expected = [
        (document, chunk * STRIDE, min(STRIDE, length - chunk * STRIDE))
        for document, length in enumerate(LENGTHS)
        for chunk in range(-(-length // STRIDE))
        if chunk == 0 or length - chunk * STRIDE >= SHORTEST_TAIL
    ]
    assert list(zip(found.document, found.offset, found.length, strict=True)) == expected


def test_fewer_are_spread_over_the_documents_first() -> None:
    found = choose(BEGINS, 9, seed=3)
    counts = np.bincount(found.document, minlength=len(LENGTHS)).tolist()
    assert counts[:5] == [1, 0, 1, 1, 2]  # all they have, but for the empty one
    assert sorted(counts[5:]) == [2, 2]
    assert (np.diff(found.document) >= 0).all()


def test_what_is_chosen_is_no_matter_of_how_many_are() -> None:
    few, more = choose(BEGINS, 10, seed=3), choose(BEGINS, 20, seed=3)
    assert set(zip(few.document, few.offset, strict=True)) < set(zip(more.document, more.offset, strict=True))


def test_beginnings_of_documents_are_not_favoured() -> None:
    lengths = np.full(600, 4 * STRIDE)
    found = choose(np.concatenate([[0], np.cumsum(lengths)]), 600, seed=0)
    counts = np.bincount(found.offset // STRIDE)
    assert len(found) == 600
    assert ((counts - 150) ** 2 / 150).sum() < 9.0  # chi-square, 3 degrees: above 7.8 in 5 % of seeds


def test_long_documents_are_not_favoured() -> None:
    lengths = np.random.default_rng(0).permutation(np.repeat([100, 28 * STRIDE], 1000))
    begins = np.concatenate([[0], np.cumsum(lengths)])
    for count in (600, 2000, 20_000):  # some of the documents, all of them once, all of them and more of the long ones
        found = choose(begins, count, seed=0)
        short = lengths[found.document] == 100
        expected = min(count, 2000) / 2
        assert abs(short.sum() - expected) < 4 * np.sqrt(expected / 2)
        windows, share = short[found.slot >= 0], short.mean()
        assert abs(windows.mean() - share) < 4 * np.sqrt(share * (1 - share) / len(windows))


def test_another_seed_chooses_others() -> None:
    assert choose(BEGINS, 12, seed=3).offset.tolist() != choose(BEGINS, 12, seed=4).offset.tolist()


def test_rows_hold_bos_then_the_tokens_then_padding() -> None:
    texts = Texts(np.arange(100, 100 + BEGINS[-1], dtype=np.int32), BEGINS)
    samples = everything()
    found = rows(texts, samples, STRUCTURE, np.array([0, len(samples) - 1, -1]))
    assert found.ids[0].tolist() == [2, 100, 101, 102, 103, 104] + [2] * (STRIDE - 5)
    assert found.counted[0].tolist() == [False] + [True] * 5 + [False] * (STRIDE - 5)
    assert found.ids[1].tolist() == [2, *range(100 + BEGINS[-1] - STRIDE, 100 + BEGINS[-1])]
    assert not found.counted[2].any()
    assert found.document.tolist() == [0, 6, -1]
    assert found.slot[2] == -1


def test_control_tokens_within_a_text_are_not_counted() -> None:
    texts = Texts(np.array([7, 1, 8, 2, 9], np.int32), np.array([0, 5]))
    found = rows(texts, choose(texts.begins, 1, 0), STRUCTURE, np.array([0]))
    assert found.counted[0, :7].tolist() == [False, True, False, True, False, True, False]


@pytest.mark.parametrize("documents", [100, PLACES + 500])
def test_windows_are_given_by_distinct_samples_and_lie_within_them(documents: int) -> None:
    lengths = np.random.default_rng(0).integers(1, STRIDE, documents)
    found = choose(np.concatenate([[0], np.cumsum(lengths)]), 10**6, seed=0)
    has = found.slot >= 0
    assert sorted(found.slot[has]) == list(range(min(documents, PLACES)))
    assert (found.start[has] >= 1).all()
    assert (found.start[has] + np.minimum(WIDTH, found.length[has]) <= 1 + found.length[has]).all()
    assert found.start[has].max() > STRIDE // 2  # anywhere in the sample, not only at its beginning
