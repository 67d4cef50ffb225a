"""What a label is scored on: verified, unseen, repeatable, and alike but for what the words say."""

import collections
import dataclasses

import numpy as np
import pytest

from neuroscope_jax.autointerp.evidence import Evidence, FeatureEvidence
from neuroscope_jax.autointerp.near_duplicates import Alike, Said
from neuroscope_jax.autointerp.pool import Pool, numbered
from neuroscope_jax.autointerp.sequences import ACTIVE, HARD, SILENT, Drawer, Sequence, shortage
from neuroscope_jax.corpus.passages import OUTSIDE
from neuroscope_jax.models.chat import ChatTokenizer
from tests.autointerp.made_up import as_shown, evidence, firing

USUAL = 700  # the token feature 3 usually fires on
WINDOWS = 400


def words(rng: np.random.Generator, count: int) -> list[int]:
    """Ids of ordinary text, USUAL not among them."""
    return rng.integers(USUAL + 1, 2500, count).tolist()


def pool_of(windows: list[list[int]], fired: dict[int, list[int]], first_document: int = 1000) -> Pool:
    """Windows from documents of their own; `fired` names for features the windows they fire in."""
    ids = np.full((len(windows), 25), OUTSIDE, np.int32)
    for row, window in zip(ids, windows, strict=True):
        row[: len(window)] = window
    bits = np.zeros((1, len(windows)), np.uint8)
    for feature, places in fired.items():
        bits[0, places] |= 1 << feature
    documents = first_document + np.arange(len(windows))
    return Pool(ids, np.array([len(w) for w in windows]), numbered(documents, 0 * documents), bits)


@pytest.fixture
def drawn() -> tuple[FeatureEvidence, Pool]:
    """A feature with 60 held-out firings of many shapes, its token in a third of the windows; it fires in a quarter."""
    rng = np.random.default_rng(0)
    top = [as_shown(firing([*words(rng, 12), USUAL, *words(rng, 12)], 12, i, 30.0 - i)) for i in range(20)]
    random = [as_shown(firing([*words(rng, 12), USUAL, *words(rng, 12)], 12, 100 + i)) for i in range(5)]
    held_out = []
    for i in range(60):
        before, after = (12, 12) if i % 2 else rng.integers(0, 13, 2).tolist()
        held_out.append(firing([*words(rng, before), USUAL, *words(rng, after)], before, 200 + i))
    windows = [words(rng, 25) for _ in range(WINDOWS)]
    for window in windows[::3]:
        window[rng.integers(25)] = USUAL
    return evidence(top, random, held_out), pool_of(windows, {3: list(range(0, WINDOWS, 4)), 2: list(range(WINDOWS))})


def texts(sequences: list[Sequence], active: bool) -> list[str]:
    return [s.text for s in sequences if s.active == active]


def spelled(pool: Pool, tokenizer: ChatTokenizer) -> list[str]:
    return [tokenizer.spelled_out(ids[:n].tolist()) for ids, n in zip(pool.ids, pool.length, strict=True)]


def test_fifty_active_and_twenty_silent_of_which_half_are_hard(
    drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer
) -> None:
    found, pool = drawn
    sequences = Drawer(pool, tokenizer, "run").of(found)
    assert len(texts(sequences, True)) == ACTIVE == 50
    assert len(texts(sequences, False)) == SILENT == 20
    held_out = {tokenizer.spelled_out(e.ids.tolist()) for e in found.held_out}
    assert set(texts(sequences, True)) < held_out
    windows = spelled(pool, tokenizer)
    usual = tokenizer.token_text(USUAL)
    hard = 0
    for sequence in sequences:
        if not sequence.active:
            (window,) = [i for i, text in enumerate(windows) if sequence.text in text]
            assert window % 4  # the feature is silent there
            assert sequence.hard == (window % 3 == 0 and usual in sequence.text)
            hard += sequence.hard
    assert HARD <= hard < SILENT
    assert not any(s.hard for s in sequences if s.active)
    assert shortage(sequences) is None


def test_lengths_do_not_tell_which_is_which(drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer) -> None:
    found, pool = drawn
    length = {tokenizer.spelled_out(e.ids.tolist()): len(e.ids) for e in found.held_out}
    drawer = Drawer(pool, tokenizer, "run")
    active = [e for e in found.held_out if tokenizer.spelled_out(e.ids.tolist()) in texts(drawer.of(found), True)]
    silent = drawer._silent(found, active[:SILENT])
    assert sorted(len(ids) for ids in silent) == sorted(len(e.ids) for e in active[:SILENT])
    assert min(length.values()) < 20 < max(length.values()) == 25


def test_the_usual_token_of_a_hard_one_is_where_it_is_in_an_active_one(
    drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer
) -> None:
    found, pool = drawn
    rng = np.random.default_rng(1)
    windows = [[*words(rng, 12), USUAL, *words(rng, 12)] for _ in range(20)]
    shapes = [firing(words(rng, 5 + n % 13), 4, n) for n in range(20)]
    for ids in Drawer(pool_of(windows, {}), tokenizer, "run")._silent(found, shapes):
        assert ids[4] == USUAL


def test_the_same_run_and_feature_draw_the_same_another_run_differs(
    drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer
) -> None:
    found, pool = drawn
    first = Drawer(pool, tokenizer, "run").of(found)
    again = Drawer(pool, tokenizer, "run")
    again.of(dataclasses.replace(found, feature=4))
    assert again.of(found) == first
    for other in (Drawer(pool, tokenizer, "other").of(found), again.of(dataclasses.replace(found, feature=4))):
        assert collections.Counter(other) != collections.Counter(first)
        assert [s.active for s in other] != [s.active for s in first]


def test_both_kinds_are_shuffled(drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer) -> None:
    found, pool = drawn
    drawer = Drawer(pool, tokenizer, "run")
    places = [
        np.mean([i for i, s in enumerate(drawer.of(dataclasses.replace(found, feature=f))) if not s.active])
        for f in (0, 1, 3, 4, 5, 6, 7)
    ]
    assert abs(np.mean(places) - 34.5) < 6  # nine standard errors are 16
    assert np.std(places) > 1


def test_nothing_comes_from_a_sample_the_labeller_saw(
    drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer
) -> None:
    found, pool = drawn
    seen = [dataclasses.replace(e, document=found.top[0].document) for e in found.held_out[:30]]
    mixed = dataclasses.replace(found, held_out=[*seen, *found.held_out[30:]])
    names = [(e.document, 0) for e in mixed.all]
    of_examples = Pool(pool.ids, pool.length, np.resize([d << 32 for d, _ in names], WINDOWS), pool.fired)
    drawer = Drawer(of_examples, tokenizer, "run")
    assert len(texts(drawer.of(mixed), True)) == 30
    assert texts(drawer.of(mixed), False) == []


def test_near_duplicates_of_examples_are_never_silent(tokenizer: ChatTokenizer) -> None:
    small, capital, boat = (tokenizer.encode_text(t) for t in (" the", " The", " boat is in the old bay"))
    digits = [tokenizer.encode_text(f"{n} birds sang in the tall old tree at the end of the road") for n in (3, 5)]
    assert len(small) == len(capital) == 1
    rng = np.random.default_rng(2)
    other = [words(rng, 25) for _ in range(12)]
    held_out = [
        firing([*small, *boat], 0, 1),
        *(firing(words(rng, 25), 12, 10 + i) for i in range(12)),
        firing(digits[0], 0, 2),
    ]
    found = evidence([as_shown(firing([*words(rng, 12), USUAL], 12, 0))], [], held_out)
    windows = [[*capital, *boat, *words(rng, 2)], digits[1], held_out[3].ids[:20].tolist(), *other]
    silent = Drawer(pool_of(windows, {}), tokenizer, "run")._silent(found, held_out[1:13])
    assert 10 <= len(silent) <= 12
    assert all(any(ids == window[: len(ids)] or set(ids) < set(window) for window in other) for ids in silent)


def test_no_two_silent_ones_say_the_same(tokenizer: ChatTokenizer) -> None:
    rng = np.random.default_rng(3)
    held_out = [firing(words(rng, 25), 12, i) for i in range(20)]
    found = evidence([as_shown(firing([USUAL], 0, 99))], [], held_out)
    same = words(rng, 25)
    assert len(Drawer(pool_of([same] * 30, {}), tokenizer, "run")._silent(found, held_out)) == 1


def test_sequences_that_share_half_their_runs_are_near_duplicates(tokenizer: ChatTokenizer) -> None:
    alike, said = Alike(tokenizer), Said()
    rng = np.random.default_rng(4)
    a, b = words(rng, 25), words(rng, 25)
    said.add(alike.runs(a))  # 22 runs of four
    assert said.nearly(alike.runs([*a[:14], *b[:11]]))  # 11 of them
    assert not said.nearly(alike.runs([*a[:13], *b[:12]]))  # 10 of them
    assert said.nearly(alike.runs(a[3:10]))
    assert not said.nearly(alike.runs(b))
    said.add(alike.runs(b[:2]))
    assert said.nearly(alike.runs(b[:2]))
    assert not said.nearly(alike.runs(b))


@pytest.mark.parametrize("held_out", [0, 3, 9, 10])
def test_few_firings_are_said(drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer, held_out: int) -> None:
    found, pool = drawn
    few = dataclasses.replace(found, held_out=found.held_out[:held_out])
    reason = shortage(Drawer(pool, tokenizer, "run").of(few))
    assert reason == (None if held_out == 10 else f"only {held_out} active sequences, at least 10 are needed")


def test_a_dense_feature_has_few_silent_ones(drawn: tuple[FeatureEvidence, Pool], tokenizer: ChatTokenizer) -> None:
    found, pool = drawn
    dense = dataclasses.replace(pool, fired=np.where(np.arange(WINDOWS) < 7, 0, 255).astype(np.uint8)[None])
    sequences = Drawer(dense, tokenizer, "run").of(found)
    assert shortage(sequences) == f"only {len(texts(sequences, False))} silent sequences, at least 10 are needed"
    assert 1 <= len(texts(sequences, False)) <= 7
    always = dataclasses.replace(pool, fired=np.full_like(pool.fired, 255))
    assert shortage(Drawer(always, tokenizer, "run").of(found)) == "only 0 silent sequences, at least 10 are needed"


def test_the_demo_pair(demo_evidence: Evidence, tokenizer: ChatTokenizer) -> None:
    drawer = Drawer(demo_evidence.pool, tokenizer, demo_evidence.provenance.run)
    windows = spelled(demo_evidence.pool, tokenizer)
    enough = 0
    for feature in demo_evidence.features()[::40]:
        found = demo_evidence.of(feature)
        sequences = drawer.of(found)
        shown = {tokenizer.spelled_out(e.ids.tolist()) for e in (*found.top, *found.random)}
        assert not shown & {s.text for s in sequences}
        silent = [text for text, yes in zip(windows, demo_evidence.pool.silent(feature), strict=True) if yes]
        assert all(any(text in window for window in silent) for text in texts(sequences, False))
        enough += shortage(sequences) is None
    assert enough > 20
