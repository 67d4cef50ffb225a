"""Requests that begin like an earlier one get the same tokens and features as ever, and feed in only what is new."""

import threading

import numpy as np
import pytest

from neuroscope_jax.engine import kept, steps
from neuroscope_jax.engine.requests import GenerationRequest
from tests.engine.collect import GREEDY, Collector, run
from tests.engine.conftest import CONTEXT, VOCAB


@pytest.fixture
def short_prefixes(monkeypatch):
    monkeypatch.setattr(kept, "LEAST", 2)


@pytest.fixture
def fed(monkeypatch):
    """Of every chunk of a prompt: (first position, tokens)."""
    found, extend, prefill, score = [], steps.extend_step, steps.prefill_step, steps.score_step

    def extending(model, params, cache, ids, start):
        found.append((int(start), ids.shape[1]))
        return extend(model, params, cache, ids, start)

    def prefilling(model, params, taps, cache, ids, start, length, sampling):
        found.append((int(start), int(length)))
        return prefill(model, params, taps, cache, ids, start, length, sampling)

    def scoring(model, params, cache, ids, start, behind):
        found.append((int(start), ids.shape[1]))
        return score(model, params, cache, ids, start, behind)

    monkeypatch.setattr(steps, "extend_step", extending)
    monkeypatch.setattr(steps, "prefill_step", prefilling)
    monkeypatch.setattr(steps, "score_step", scoring)
    return found


def prompt(length, seed=0):
    return np.random.default_rng(seed).integers(0, VOCAB, length).tolist()


def assert_same(found, expected):
    assert found.ids == expected.ids
    assert found.ends == expected.ends
    for ours, theirs in zip(found.tokens, expected.tokens, strict=True):
        assert (ours.index, ours.position, ours.input_id) == (theirs.index, theirs.position, theirs.input_id)
        assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-4)
        for a, b in zip(ours.features, theirs.features, strict=True):
            assert a.indices == b.indices
            np.testing.assert_allclose(a.activations, b.activations, rtol=1e-4)


@pytest.mark.parametrize("length", [4, 5, 8, 9, 17, 40])
def test_a_prompt_in_chunks(make_engine, fed, length):
    """8 tokens a chunk; that the answer is right is test_greedy_equals_a_plain_loop's."""
    engine = make_engine()
    fed.clear()
    run(engine, prompt(length), 3)
    assert [begin for begin, _ in fed] == list(range(0, length, 8))
    assert sum(count for _, count in fed) == length


def test_the_turns_of_a_chat(make_engine, short_prefixes, fed):
    """Each turn's prompt is all that was said before and something new."""
    chatty, text = make_engine(), prompt(6)
    for turn in range(5):
        fed.clear()
        answer = run(chatty, text, 4)
        assert sum(count for _, count in fed) == (6 if turn == 0 else 4), "the last answer's end and what is new"
        assert_same(answer, run(make_engine(), text, 4))
        text = [*text, *answer.ids, *prompt(3, turn + 1)]


def test_an_answer_written_anew(make_engine, short_prefixes, fed):
    engine, text = make_engine(), prompt(20)
    first = run(engine, text, 12)
    fed.clear()
    again = run(engine, text, 12)
    assert fed == [(19, 1)]
    assert_same(again, first)


@pytest.mark.parametrize("shared", [2, 7, 8, 15, 30])
def test_a_prompt_that_goes_another_way(make_engine, short_prefixes, fed, shared):
    engine, text = make_engine(), prompt(31)
    run(engine, text, 20)
    other = [*text[:shared], *((token + 1) % VOCAB for token in text[shared:])]
    fed.clear()
    found = run(engine, other, 20)
    assert sum(count for _, count in fed) == 31 - shared
    assert_same(found, run(make_engine(), other, 20))
    assert_same(run(engine, text, 20), run(make_engine(), text, 20))


def test_a_long_answer_whose_cache_has_grown(make_engine, short_prefixes, fed):
    engine, text = make_engine(), prompt(3)
    answer = run(engine, text, 40)
    text = [*text, *answer.ids, 5]
    fed.clear()
    found = run(engine, text, 10)
    assert fed == [(42, 2)]
    assert_same(found, run(make_engine(), text, 10))


def test_up_to_the_end_of_the_context(make_engine, short_prefixes):
    engine, text = make_engine(), prompt(3)
    answer = run(engine, text, CONTEXT)
    assert len(answer.ids) == CONTEXT - 3
    text = [*text, *answer.ids][: CONTEXT - 1]
    assert_same(run(engine, text, 10), run(make_engine(), text, 10))


def test_little_in_common_is_read_anew(make_engine, fed):
    engine = make_engine()
    run(engine, prompt(9), 2)
    fed.clear()
    run(engine, prompt(9), 2)
    assert sum(count for _, count in fed) == 9


def test_after_an_error_nothing_is_kept(make_engine, short_prefixes, monkeypatch, fed):
    engine, text = make_engine(), prompt(6)
    with monkeypatch.context() as patch:
        patch.setattr(steps, "decode_step", lambda *a: 1 / 0)
        assert [end.reason for end in run(engine, text, 5).ends] == ["error"]
    fed.clear()
    run(engine, text, 5)
    assert sum(count for _, count in fed) == 6


def test_cancelled_between_two_chunks(make_engine, short_prefixes, monkeypatch):
    """What was read until then is not read again."""
    engine, text, collector, jobs, starts = make_engine(), prompt(40), Collector(), [], []
    extend = steps.extend_step

    def extending(model, params, cache, ids, start):
        starts.append(int(start))
        if len(starts) == 2:
            jobs[0].cancel()
        return extend(model, params, cache, ids, start)

    monkeypatch.setattr(steps, "extend_step", extending)
    ready = threading.Event()
    engine.submit(GenerationRequest((1,), 1, GREEDY), lambda item: ready.wait(60))
    jobs.append(engine.submit(GenerationRequest(tuple(text), 5, GREEDY), collector))
    ready.set()
    assert [end.reason for end in collector.wait().ends] == ["cancelled"]
    assert starts == [0, 8]
    answer = run(engine, text, 5)
    assert starts == [0, 8, 16, 24]
    assert_same(answer, run(make_engine(), text, 5))


@pytest.mark.parametrize("length", [3, 20])
def test_a_scored_prompt_is_read_once(make_engine, short_prefixes, fed, length):
    """And what is kept of other requests stays as it was."""
    engine, text = make_engine(), prompt(length)
    chat = run(engine, [*text, *prompt(20, 1)], 3)
    fed.clear()
    found = run(engine, text, 12, score_prompt=True)
    begins = list(range(0, length, 8))
    assert fed == [*((begin, 4 if length - begin <= 4 else 8) for begin in begins), (length - 1, 1)]
    assert len(found.scored[0].logprobs) == length - 1
    assert_same(found, run(make_engine(), text, 12))
    fed.clear()
    run(engine, [*text, *prompt(20, 1), *chat.ids, 1, 2], 3)
    assert sum(count for _, count in fed) == 3


def test_cancelled_while_a_prompt_is_scored(make_engine, short_prefixes, monkeypatch, fed):
    engine, text, collector, jobs = make_engine(), prompt(40), Collector(), []
    fed.clear()
    score = steps.score_step

    def scoring(*args):
        jobs[0].cancel()
        return score(*args)

    monkeypatch.setattr(steps, "score_step", scoring)
    ready = threading.Event()
    engine.submit(GenerationRequest((1,), 1, GREEDY), lambda item: ready.wait(60))
    jobs.append(engine.submit(GenerationRequest(tuple(text), 5, GREEDY, score_prompt=True), collector))
    ready.set()
    assert [end.reason for end in collector.wait().ends] == ["cancelled"]
    assert collector.scored == collector.tokens == []
    assert fed == [(0, 1), (0, 8)]
    assert_same(run(engine, text, 5), run(make_engine(), text, 5))
