"""With lookahead the tokens, their figures and features are those without, in fewer steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.engine import kept, steps
from neuroscope_jax.engine.requests import GenerationRequest, SamplingOptions
from neuroscope_jax.engine.sampling import Sampling, choose, choose_in_turn
from tests.engine.collect import GREEDY, Collector, run
from tests.engine.conftest import CONTEXT, VOCAB
from tests.engine.test_prefixes import assert_same, prompt

REPEATED = [*prompt(7), *prompt(7), *prompt(7)]

SAMPLINGS = {
    "greedy": GREEDY,
    "drawn": SamplingOptions(temperature=0.4, seed=3),
    "nucleus": SamplingOptions(temperature=0.7, top_p=0.8, seed=5, top_logprobs=3),
    "few": SamplingOptions(temperature=1.0, top_k=3, seed=8),
    "penalties": SamplingOptions(temperature=0, presence_penalty=0.3, frequency_penalty=0.2, top_logprobs=2),
}


@pytest.fixture
def verified(monkeypatch):
    """Of every verify_step: how many choices came of it."""
    found, verify = [], steps.verify_step

    def verifying(*args):
        state, outputs, number = verify(*args)
        found.append(int(number))
        return state, outputs, number

    monkeypatch.setattr(steps, "verify_step", verifying)
    return found


@pytest.mark.parametrize("name", SAMPLINGS)
@pytest.mark.parametrize("text", [REPEATED, prompt(5), prompt(20, 2)], ids=["repeated", "short", "long"])
def test_the_same_answer(make_engine, verified, text, name):
    limit = CONTEXT - len(text)
    plain = run(make_engine(), text, limit, SAMPLINGS[name])
    ahead = run(make_engine(lookahead=True), text, limit, SAMPLINGS[name])
    assert_same(ahead, plain)
    for ours, theirs in zip(ahead.tokens, plain.tokens, strict=True):
        assert [i for i, _ in ours.top_logprobs] == [i for i, _ in theirs.top_logprobs]


def test_a_text_that_repeats_itself_takes_fewer_steps(make_engine, verified):
    """The random model soon goes in circles."""
    engine = make_engine(lookahead=True)
    verified.clear()
    answer = run(engine, prompt(5), 50)
    assert len(answer.tokens) == 50
    assert max(verified) == 8, "all seven came true, and one more"
    assert sum(verified) > 2 * len(verified)


@pytest.mark.slow
def test_a_limit_within_a_step(make_engine):
    whole = run(make_engine(), prompt(5), 50).ids
    engine = make_engine(lookahead=True)
    for limit in (1, 2, 17, 18, 19, 20, 21, 22, 23, 24, 25):
        assert run(engine, prompt(5), limit).ids == whole[:limit]


def test_a_stop_id_within_a_step(make_engine):
    whole = run(make_engine(), prompt(5), 50).ids
    stop = whole[-1]
    expected = whole[: whole.index(stop)]
    found = run(make_engine(stop_ids=(stop,), lookahead=True), prompt(5), 50)
    assert found.ids == expected
    assert found.ends[0].reason == "stop"


def test_a_stop_id_that_is_proposed(make_engine, verified):
    """Whatever was proposed behind it: nothing follows a stop id."""
    whole = run(make_engine(), prompt(5), 30).ids
    stop = whole[-1]
    text = [*prompt(5), *whole]
    plain = run(make_engine(stop_ids=(stop,)), text, CONTEXT - len(text))
    found = run(make_engine(stop_ids=(stop,), lookahead=True), text, CONTEXT - len(text))
    assert_same(found, plain)


def test_what_is_kept_serves_the_next_turn(make_engine, monkeypatch, verified):
    """Slots that wrong proposals were written to are not taken for the text."""
    monkeypatch.setattr(kept, "LEAST", 2)
    engine, text = make_engine(lookahead=True), REPEATED
    for turn in range(4):
        answer = run(engine, text, 6)
        assert_same(answer, run(make_engine(), text, 6))
        text = [*text, *answer.ids, *prompt(2, turn + 1)]
    assert verified


def test_cancelled_within_a_step(make_engine):
    engine, collector = make_engine(lookahead=True), Collector()
    jobs = []

    def deliver(item):
        collector(item)
        if len(collector.tokens) == 20:
            jobs[0].cancel()

    whole = run(make_engine(), prompt(5), 50).ids
    jobs.append(engine.submit(GenerationRequest(tuple(prompt(5)), 50, GREEDY), deliver))
    collector.wait()
    assert collector.ends[0].reason == "cancelled"
    assert collector.ids == whole[:20]


@pytest.mark.parametrize("right", range(8))
def test_choices_in_turn_are_choices_one_by_one(right):
    rng = np.random.default_rng(right)
    logits = jnp.asarray(rng.standard_normal((8, VOCAB)) * 3, jnp.float32)
    options = SamplingOptions(temperature=0.9, top_p=0.9, seed=right, presence_penalty=0.5, frequency_penalty=0.4)
    sampling, counts = Sampling.of(options, []), jnp.zeros(VOCAB, jnp.int32)
    expected = []
    for place in range(right + 1):
        expected.append(int(jax.jit(choose)(logits[place], counts, sampling, jnp.int32(40 + place)).id))
        counts = counts.at[expected[-1]].add(1)
    wrong = (expected[-1] + 1) % VOCAB
    proposed = jnp.asarray([*expected[:right], *[wrong] * 8][:7], jnp.int32)
    none = jnp.zeros(VOCAB, jnp.int32)
    choices, found_counts, number = jax.jit(choose_in_turn)(logits, proposed, none, sampling, 40 + jnp.arange(8))
    assert number == right + 1
    assert choices.id[: right + 1].tolist() == expected
    np.testing.assert_array_equal(found_counts, counts)
