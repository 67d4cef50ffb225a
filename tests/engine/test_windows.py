"""A long cache, whose local layers use their slots over and over, gives the answers of one that keeps everything."""

import dataclasses

import jax.numpy as jnp
import pytest

from neuroscope_jax.engine import chunks, kept, sequence
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.models import cache
from neuroscope_jax.models.gemma2 import Gemma2
from tests.engine.collect import run
from tests.engine.conftest import CONFIG
from tests.engine.test_prefixes import assert_same, prompt

pytestmark = pytest.mark.slow

CONTEXT = 200
SLOTS = 64  # of a local layer where they are few; its window is 8


@pytest.fixture
def engines(params, taps, monkeypatch):
    """One that keeps everything and one that does not, and both with lookahead."""
    monkeypatch.setattr(chunks, "CHUNK_BUCKETS", (8, 16))
    monkeypatch.setattr(sequence, "CACHE_BUCKETS", (40, 120))
    monkeypatch.setattr(kept, "LEAST", 2)
    made = []

    def make(margin, lookahead=False):
        monkeypatch.setattr(cache, "MARGIN", margin)
        config = dataclasses.replace(CONFIG, max_position_embeddings=CONTEXT + margin)  # programs of its own
        engine = JaxEngine(Gemma2(config, jnp.float32), params, taps, (), CONTEXT, 4, lookahead)
        engine.start()
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()


@pytest.mark.parametrize("lookahead", [False, True])
@pytest.mark.parametrize("length", [5, 60, 70, 150])
def test_the_same_answer(engines, length, lookahead):
    text, limit = prompt(length), CONTEXT - length
    expected = run(engines(10_000), text, limit)
    engine = engines(50, lookahead)
    assert_same(run(engine, text, limit), expected)
    (last,) = engine._kept._kept
    assert [keys.shape[1] for keys in last.cache.keys] == [SLOTS, CONTEXT, SLOTS]


def test_a_scored_prompt(engines):
    text = prompt(150)
    (expected,), (found,) = (run(engines(margin), text, 0, score_prompt=True).scored for margin in (10_000, 50))
    assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-4)


def test_the_turns_of_a_chat_and_side_questions(engines):
    """Past the local slots: what is taken up again, cut back, or too far gone."""
    whole, asked = engines(10_000), []
    text = prompt(50)
    for turn in range(5):
        asked.append((text, 5, run(whole, text, 5)))
        for back in (1, 3, 20, len(text) - 30):
            cut = [*text[: len(text) - back], *prompt(2, turn)]
            asked.append((cut, 4, run(whole, cut, 4)))
        text = [*text, *asked[5 * turn][2].ids, *prompt(12, turn + 1)]
    few = engines(50)
    for ids, limit, expected in asked:
        assert_same(run(few, ids, limit), expected)


def test_a_text_cut_back_again_and_again(engines):
    """Each time by less than the margin, and in the end by more: what was written first is still what counts."""
    whole, text = engines(10_000), prompt(190)
    lengths = range(190, 90, -7)
    expected = [run(whole, text[:length], 1) for length in lengths]
    few = engines(50)
    for length, answer in zip(lengths, expected, strict=True):
        assert_same(run(few, text[:length], 1), answer)


@pytest.mark.parametrize(("count", "taken"), [(150, True), (60, False)])
def test_some_text_is_taken_up_again_and_some_is_not(engines, count, taken):
    engine = engines(50)
    run(engine, prompt(150), 5)
    assert (engine._kept.take([*prompt(150)[:count], *[1] * 10], CONTEXT) is not None) is taken
