"""Which examples are kept, and in which context they are shown."""

import collections

import numpy as np
import pytest

from neuroscope_jax.corpus import examples
from neuroscope_jax.corpus.collected import Collected, Entries
from neuroscope_jax.corpus.examples import Example, choose
from neuroscope_jax.corpus.passages import OUTSIDE, Passages, joined
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER

SAMPLES = 300


@pytest.fixture(scope="module")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(DEMO_FOLDER / "model")


@pytest.fixture(scope="module")
def passages() -> Passages:
    """Documents of two stretches of random tokens each; the second is half full. Document 1 repeats document 0."""
    rng = np.random.default_rng(0)
    ids = rng.integers(300, 3000, (SAMPLES, STRIDE)).astype(np.int32)
    ids[1::2, STRIDE // 2 :] = OUTSIDE
    ids[2:4] = ids[:2]
    number = np.arange(SAMPLES)
    return Passages(number // 2, number % 2, ids, np.full(SAMPLES, -1), np.zeros(SAMPLES, int))


def entries(rows: list[list[tuple[int, int, float]]], places: int) -> Entries:
    """From (document, offset, activation) for each feature."""
    columns = np.zeros((4, len(rows), places))
    for e, row in enumerate(rows):
        for k, (document, offset, activation) in enumerate(row):
            columns[:, e, k] = k, document, offset, activation
    key, document, offset, activation = columns
    return Entries(key.astype(np.uint32), document.astype(int), offset.astype(int), activation.astype(np.float32))


def collected(top: list[tuple[int, int, float]], drawn: list[tuple[int, int, float]]) -> Collected:
    zeros = np.zeros(1)
    return Collected(
        1, zeros.astype(int), zeros, zeros, np.zeros((1, 32), int), entries([top], 64), entries([drawn], 128),
        np.zeros((1, 1), np.uint32),
    )  # fmt: skip


def firings(count: int, strongest: float) -> list[tuple[int, int, float]]:
    """One in each sample, at its 21st token, ever weaker."""
    return [(i // 2, (i % 2) * STRIDE + 20, strongest - i) for i in range(count)]


@pytest.fixture(scope="module")
def chosen(passages: Passages, tokenizer: ChatTokenizer) -> dict[str, list[Example]]:
    rng = np.random.default_rng(1)
    everything = firings(250, 1000)
    drawn = [everything[i] for i in rng.permutation(250)[:128]]
    ((found, _),) = choose(collected(everything[:64], drawn), passages, tokenizer)
    kinds = collections.defaultdict(list)
    for example in found:
        kinds[example.kind].append(example)
    return kinds


def test_the_twenty_strongest_without_near_duplicates(chosen: dict[str, list[Example]]) -> None:
    # Samples 2 and 3 say the same as 0 and 1.
    assert [e.activation for e in chosen["top"]] == [1000, 999, *range(996, 978, -1)]
    assert [e.rank for e in chosen["top"]] == list(range(20))
    assert {e.quantile for e in chosen["top"]} == {None}


def test_random_examples_lie_at_the_rank_quantiles(chosen: dict[str, list[Example]]) -> None:
    np.testing.assert_allclose([e.quantile for e in chosen["random"]], examples.QUANTILES, atol=0.02)


def test_no_sample_serves_twice(chosen: dict[str, list[Example]]) -> None:
    samples = [(e.document, e.offset // STRIDE) for kind in chosen.values() for e in kind]
    assert len(samples) == len(set(samples)) == 20 + 5 + examples.HELD_OUT


def test_held_out_examples_are_of_all_strengths(chosen: dict[str, list[Example]]) -> None:
    quantiles = [e.quantile for e in chosen["held_out"]]
    assert quantiles == sorted(quantiles)
    assert max(np.diff([0, *quantiles, 1])) < 0.2  # the strongest are top examples already


def test_case_and_digits_make_no_difference_between_duplicates(passages: Passages, tokenizer: ChatTokenizer) -> None:
    ids = passages.ids.copy()
    lower, upper, one, two = (tokenizer.single_token(text) for text in (" it", " It", "1", "2"))
    assert -1 not in (lower, upper, one, two)
    for row, tokens in ((10, [lower, one, 300]), (12, [upper, two, 300]), (14, [lower, one, 301])):
        ids[row, :3] = tokens
        ids[row, 3:] = OUTSIDE
    same = Passages(passages.document, passages.chunk, ids, passages.slot, passages.start)
    top = [(5, 2, 3.0), (6, 2, 2.0), (7, 2, 1.0)]
    ((found, dropped),) = choose(collected(top, []), same, tokenizer)
    assert ([e.document for e in found], dropped) == ([5, 7], 1)


@pytest.mark.parametrize(("place", "kept"), [(60, [5]), (63, [5]), (59, [5, 6]), (40, [5, 6])])
def test_what_follows_the_token_makes_no_difference(
    passages: Passages, tokenizer: ChatTokenizer, place: int, kept: list[int]
) -> None:
    # Documents 5 and 6 agree from their 48th token to before `place`; the feature fires on the 60th.
    ids = passages.ids.copy()
    ids[12, 47:place] = ids[10, 47:place]
    same = Passages(passages.document, passages.chunk, ids, passages.slot, passages.start)
    ((found, dropped),) = choose(collected([(5, 59, 2.0), (6, 59, 1.0)], []), same, tokenizer)
    assert ([e.document for e in found], dropped) == (kept, 2 - len(kept))


def test_a_feature_that_never_fired_has_no_example(passages: Passages, tokenizer: ChatTokenizer) -> None:
    assert list(choose(collected([], []), passages, tokenizer)) == [([], 0)]


def test_few_firings_are_all_kept(passages: Passages, tokenizer: ChatTokenizer) -> None:
    few = firings(40, 100)[4:30]
    ((found, _),) = choose(collected(few, few), passages, tokenizer)
    assert collections.Counter(e.kind for e in found) == {"top": 20, "random": 5, "held_out": 1}


def test_contexts_end_with_their_sample(passages: Passages) -> None:
    document, offset = np.array([3, 3, 3, 3]), np.array([50, 4, STRIDE - 1, STRIDE + 62])
    found = passages.contexts(document, offset)
    first, second = passages.ids[6], passages.ids[7]
    assert found[0].tolist() == first[38:63].tolist()
    assert found[1].tolist() == [OUTSIDE] * 8 + first[:17].tolist()
    assert found[2].tolist() == first[-13:].tolist() + [OUTSIDE] * 12
    assert found[3].tolist() == second[50:63].tolist() + [OUTSIDE] * 12


def test_joined_passages_are_those_of_all_parts_once(passages: Passages) -> None:
    def part(numbers: np.ndarray) -> Passages:
        columns = passages.document, passages.chunk, passages.ids, passages.slot, passages.start
        return Passages(*(column[numbers] for column in columns))

    found = joined([part(np.arange(100, 300)), part(np.arange(0, 120))])
    np.testing.assert_array_equal(found.ids, passages.ids)
