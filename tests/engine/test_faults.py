"""Steps that fail or are given up at any moment end their request only; the next one is answered as ever."""

import gc
import random
import threading

import jax
import pytest

from neuroscope_jax.engine import sequence, steps
from neuroscope_jax.engine.requests import Finished, GenerationRequest
from tests.engine.collect import GREEDY, Collector, run

TOKENS = 20


def failing(monkeypatch, module, name, at, calls):
    """Make the call number `at` of a function raise."""
    original = getattr(module, name)

    def call(*arguments):
        calls.append(name)
        if len(calls) == at + 1:
            raise RuntimeError("the device is gone, say")
        return original(*arguments)

    monkeypatch.setattr(module, name, call)


def test_a_step_that_fails_at_a_random_token(make_engine, monkeypatch):
    engine, drawn = make_engine(), random.Random(3)
    good = run(engine, [1, 2, 3], TOKENS).ids
    for _ in range(5):
        at, calls = drawn.randrange(TOKENS), []
        with monkeypatch.context() as patch:
            failing(patch, steps, "prefill_step", at, calls)
            failing(patch, steps, "decode_step", at, calls)
            failed = run(engine, [1, 2, 3], TOKENS)
        assert failed.ids == good[: max(at - 1, 0)], "one step is ahead"
        assert [end.reason for end in failed.ends] == ["error"]
        assert run(engine, [1, 2, 3], TOKENS).ids == good


@pytest.mark.parametrize("at", [0, 2])
def test_a_prompt_that_cannot_be_scored(make_engine, monkeypatch, at):
    engine, prompt = make_engine(), [1, 2, 3] * 8
    good = run(engine, prompt, TOKENS).ids
    with monkeypatch.context() as patch:
        failing(patch, steps, "score_step", at, [])
        failed = run(engine, prompt, TOKENS, score_prompt=True)
    assert (failed.scored, failed.ids, [end.reason for end in failed.ends]) == ([], [], ["error"])
    assert run(engine, prompt, TOKENS, score_prompt=True).ids == good


@pytest.mark.parametrize("at", [0, 1, 13])
def test_a_figure_that_cannot_be_fetched(make_engine, monkeypatch, at):
    engine = make_engine()
    good = run(engine, [1, 2, 3], TOKENS).ids
    with monkeypatch.context() as patch:
        failing(patch, jax, "device_get", at, [])
        failed = run(engine, [1, 2, 3], TOKENS)
    assert (failed.ids, [end.reason for end in failed.ends]) == (good[:at], ["error"])
    assert run(engine, [1, 2, 3], TOKENS).ids == good


def test_after_an_error_its_cache_is_gone_at_once(make_engine, monkeypatch):
    """What follows needs the memory; no collector runs in between."""
    engine, calls = make_engine(), []
    failing(monkeypatch, steps, "decode_step", 3, calls)
    gc.collect()
    gc.disable()
    try:
        failed = run(engine, [1, 2, 3], TOKENS)
        left = [array.shape for array in jax.live_arrays() if array.ndim == 4]
    finally:
        gc.enable()
    assert [end.reason for end in failed.ends] == ["error"]
    assert left == []


def test_a_cache_that_cannot_grow(make_engine, monkeypatch):
    monkeypatch.setattr(sequence, "ROOM_FOR_ANSWER", 4)
    engine = make_engine()
    good = run(engine, [1, 2, 3], 40).ids
    with monkeypatch.context() as patch:
        failing(patch, steps, "grow_cache", 0, [])
        failed = run(engine, [1, 2, 3], 40)
    assert [end.reason for end in failed.ends] == ["error"]
    assert 0 < len(failed.ids) < 40
    assert run(engine, [1, 2, 3], 40).ids == good


def test_giving_up_during_prefill_frees_the_engine_after_it(make_engine, monkeypatch):
    engine, inside, go_on = make_engine(), threading.Event(), threading.Event()
    prefill, collector, waiting = steps.prefill_step, Collector(), Collector()
    monkeypatch.setattr(steps, "prefill_step", lambda *a: inside.set() or go_on.wait(60) and prefill(*a))
    job = engine.submit(GenerationRequest((1, 2), 50, GREEDY), collector)
    engine.submit(GenerationRequest((3,), 2, GREEDY), waiting)
    inside.wait(60)
    job.cancel()
    go_on.set()
    assert collector.wait().ends == [Finished("cancelled", 0)]
    assert waiting.wait().ends == [Finished("length", 2)]
