"""The engine against a plain loop without cache, buckets or thread, and the life of a request."""

import dataclasses
import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.engine import engine as engine_module
from neuroscope_jax.engine import steps
from neuroscope_jax.engine.requests import (
    Finished,
    GeneratedToken,
    GenerationRequest,
    QueueFull,
    SamplingOptions,
)
from tests.engine.collect import GREEDY, Collector, run
from tests.engine.conftest import CONTEXT, VOCAB


@functools.cache
def whole_sequence(model):
    """Logits and the residual after every layer at every position, without a cache, always over CONTEXT tokens."""

    def forward(params, ids):
        positions = jnp.arange(CONTEXT)[None]
        (hidden, _), sown = model.apply({"params": params}, ids, positions, mutable=["intermediates"])
        residuals = [sown["intermediates"][f"layers_{i}"]["resid_post"][0][0] for i in range(3)]
        return model.apply({"params": params}, hidden, method="logits")[0], residuals

    return jax.jit(forward)


def plain_greedy(model, params, prompt, count):
    """ids and, per step, the residual after every layer at the last position: the whole sequence again each time."""
    ids, residuals = list(prompt), []
    for _ in range(count):
        padded = jnp.array([ids + [0] * (CONTEXT - len(ids))])
        logits, layers = whole_sequence(model)(params, padded)
        residuals.append([layer[len(ids) - 1] for layer in layers])
        ids.append(int(jnp.argmax(logits[len(ids) - 1])))
    return ids[len(prompt) :], residuals


# 8 and 9 straddle a prompt bucket; answers of 30 cross two cache buckets and end at the context.
@pytest.mark.parametrize("prompt_length", [1, 7, 8, 9, 31])
def test_greedy_equals_a_plain_loop(make_engine, model, params, taps, prompt_length):
    prompt = np.random.default_rng(prompt_length).integers(0, VOCAB, prompt_length).tolist()
    answer = run(make_engine(), prompt, 29)
    expected, residuals = plain_greedy(model, params, prompt, 29)
    assert answer.ids == expected
    for token, at_token in zip(answer.tokens, residuals, strict=True):
        for tap, features in zip(taps, token.features, strict=True):
            encoded = np.asarray(tap.sae.encode(at_token[tap.layer]))
            order = np.argsort(-encoded, kind="stable")[: tap.top_k]
            assert features.layer == tap.layer
            assert list(features.indices) == order[encoded[order] > 0].tolist()
            np.testing.assert_allclose(features.activations, encoded[order][encoded[order] > 0], rtol=1e-3)
            assert features.filtered_count == 0
            assert features.surprise is None


def test_positions_and_inputs(make_engine):
    answer = run(make_engine(), [5, 6, 7], 4)
    assert [t.index for t in answer.tokens] == [0, 1, 2, 3]
    assert [t.position for t in answer.tokens] == [2, 3, 4, 5]
    assert [t.input_id for t in answer.tokens] == [7, *answer.ids[:-1]]
    assert answer.ends == [Finished("length", 4)]


def test_context_ends_an_answer(make_engine):
    answer = run(make_engine(), range(50), 1000)
    assert len(answer.tokens) == CONTEXT - 50
    assert answer.ends == [Finished("length", CONTEXT - 50)]


def test_stop_id_ends_and_is_not_delivered(make_engine):
    free = run(make_engine(), [1, 2, 3], 20).ids
    stop = free[7]
    answer = run(make_engine(stop_ids=(stop,)), [1, 2, 3], 20)
    first = free.index(stop)
    assert answer.ids == free[:first]
    assert answer.ends == [Finished("stop", first)]


def test_same_seed_same_answer_other_seed_another(make_engine):
    engine = make_engine()
    one, again, other = (run(engine, [1, 2], 30, SamplingOptions(seed=seed)).ids for seed in (7, 7, 8))
    assert one == again != other
    unseeded = [run(engine, [1, 2], 30, SamplingOptions()).ids for _ in range(2)]
    assert unseeded[0] != unseeded[1]


def test_logprobs_are_the_models_own(make_engine, model, params):
    answer = run(make_engine(), [1, 2, 3], 3, SamplingOptions(temperature=1.7, top_k=3, seed=1, top_logprobs=4))
    ids = jnp.asarray([[1, 2, 3, *answer.ids]])
    logits = model.apply({"params": params}, ids, jnp.arange(6)[None], method="scores")[0]
    logits = np.asarray(logits, np.float64)
    logprobs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    for i, token in enumerate(answer.tokens):
        assert token.logprob == pytest.approx(logprobs[2 + i, token.id], abs=1e-4)
        assert [j for j, _ in token.top_logprobs] == np.argsort(-logprobs[2 + i], kind="stable")[:4].tolist()


@pytest.mark.parametrize("length", [1, 2, 9, 40, 53])
def test_a_scored_prompt_comes_first_with_the_models_own_logprobs(make_engine, model, params, length):
    """Of the longest, the last chunk of 8 begins early: it would reach past the cache."""
    prompt = np.random.default_rng(length).integers(0, VOCAB, length).tolist()
    options = SamplingOptions(temperature=0, top_logprobs=3)
    found = run(make_engine(context=54), prompt, 0, options, score_prompt=True)
    assert found.ends == [Finished("length", 0)]
    logits = np.asarray(whole_sequence(model)(params, jnp.array([prompt + [0] * (CONTEXT - length)]))[0], np.float64)
    logprobs = (logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))[: length - 1]
    (scored,) = found.scored
    assert len(scored.logprobs) == len(scored.top_logprobs) == length - 1
    np.testing.assert_allclose(scored.logprobs, logprobs[np.arange(length - 1), prompt[1:]], atol=1e-4)
    for row, expected in zip(scored.top_logprobs, logprobs, strict=True):
        assert [token_id for token_id, _ in row] == np.argsort(-expected, kind="stable")[:3].tolist()


def test_what_may_be_kept_is_known_once_the_weights_are_there(make_engine, monkeypatch):
    monkeypatch.setattr(engine_module, "budget", lambda: 12345)
    assert make_engine()._kept.budget == 12345


def test_steps_are_dispatched_one_ahead(make_engine, monkeypatch):
    engine, log = make_engine(), []
    for name in ("prefill_step", "decode_step"):
        step = getattr(steps, name)
        monkeypatch.setattr(steps, name, lambda *a, _step=step, _name=name: log.append(_name) or _step(*a))
    collector = Collector()
    engine.submit(GenerationRequest((1, 2), 3, GREEDY), lambda item: log.append(type(item).__name__) or collector(item))
    collector.wait()
    assert log == [
        "prefill_step", "decode_step", "GeneratedToken", "decode_step", "GeneratedToken", "GeneratedToken", "Finished",
    ]  # fmt: skip


def test_another_request_compiles_nothing(make_engine):
    engine, compiled = make_engine(), []
    run(engine, [1, 2, 3], 20)
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: compiled.append(event) if "compile" in event else None
    )
    try:
        run(engine, [4, 5], 20, SamplingOptions(0.7, 0.9, 40, 3, 0.5, -0.5, 5))
        run(engine, [9] * 4, 20, SamplingOptions(0.1, 0.2, 1, None, 2.0, 1.0, 0))
        run(engine, [4, 5], 20, SamplingOptions(logit_bias=((3, -100.0), (7, 2.5))))
    finally:
        jax.monitoring.clear_event_listeners()
    assert compiled == []


def test_requests_are_served_in_order(make_engine):
    engine, order = make_engine(start=False), []
    collectors = [Collector() for _ in range(4)]
    for i, collector in enumerate(collectors):
        engine.submit(GenerationRequest((i + 1,), 3, GREEDY), lambda item, i=i, c=collector: order.append(i) or c(item))
    engine.start()
    for i, collector in enumerate(collectors):
        assert collector.wait().ids == run(engine, [i + 1], 3).ids
    assert order == sorted(order)


def test_full_queue_refuses_at_once(make_engine):
    engine = make_engine(queue_size=2, start=False)
    for _ in range(2):
        engine.submit(GenerationRequest((1,), 1), Collector())
    with pytest.raises(QueueFull, match="2 requests"):
        engine.submit(GenerationRequest((1,), 1), Collector())
    engine.start()


@pytest.mark.parametrize(("prompt", "tokens"), [((), 1), (range(CONTEXT), 1), ((1,), 0)])
def test_impossible_requests_are_refused(make_engine, prompt, tokens):
    with pytest.raises(ValueError, match=r"prompt has|max_tokens is 0"):
        make_engine(start=False).submit(GenerationRequest(tuple(prompt), tokens), Collector())


def test_cancel_while_running_frees_the_engine(make_engine):
    engine, collector, running, go_on = make_engine(), Collector(), threading.Event(), threading.Event()

    def deliver(item):
        collector(item)
        running.set()
        go_on.wait(60)

    job = engine.submit(GenerationRequest((1, 2), 50, GREEDY), deliver)
    waiting = Collector()
    engine.submit(GenerationRequest((3,), 2, GREEDY), waiting)
    running.wait(60)
    job.cancel()
    go_on.set()
    assert collector.wait().ends[0].reason == "cancelled"
    assert len(collector.tokens) <= 2
    assert waiting.wait().ends == [Finished("length", 2)]


def test_cancel_while_queued_ends_at_once_and_frees_the_place(make_engine):
    engine, collector = make_engine(queue_size=1, start=False), Collector()
    engine.submit(GenerationRequest((1,), 5), collector).cancel()
    assert collector.ends == [Finished("cancelled", 0)]
    engine.submit(GenerationRequest((1,), 5), Collector()).cancel()
    assert collector.tokens == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # it is let die on purpose
def test_a_dying_thread_leaves_nobody_waiting(make_engine):
    engine, running, waiting = make_engine(start=False), Collector(), Collector()

    def fatal(item):
        running(item)
        if isinstance(item, GeneratedToken):
            raise SystemExit

    engine.submit(GenerationRequest((1,), 5), fatal)
    engine.submit(GenerationRequest((1,), 5), waiting)
    engine.start()
    assert [end.reason for end in (*running.wait().ends, *waiting.wait().ends)] == ["error", "error"]
    engine.close()
    assert not engine.alive
    with pytest.raises(QueueFull, match="closed"):
        engine.submit(GenerationRequest((1,), 5), Collector())


def test_a_deliver_that_fails_ends_its_request_only(make_engine):
    engine = make_engine()

    def gone(item):
        raise RuntimeError("the event loop is closed")

    engine.submit(GenerationRequest((1,), 5), gone)
    assert len(run(engine, [1, 2], 3).tokens) == 3


def test_close_ends_everything_once(make_engine):
    engine, collectors, started = make_engine(), [Collector() for _ in range(3)], threading.Event()
    for collector in collectors:
        engine.submit(GenerationRequest((1,), 50, GREEDY), lambda item, c=collector: c(item) or started.set())
    started.wait(60)
    engine.close()
    assert not engine.alive
    for collector in collectors:
        assert len(collector.ends) == 1
        assert collector.ends[0].reason in ("cancelled", "length")


def test_a_failing_step_ends_its_request_only(make_engine, monkeypatch):
    engine, step, calls = make_engine(), steps.decode_step, []

    def failing(*args):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("out of memory, say")
        return step(*args)

    monkeypatch.setattr(steps, "decode_step", failing)
    failed = run(engine, [1, 2], 10)
    assert (failed.ends[0].reason, str(failed.ends[0].error)) == ("error", "out of memory, say")
    assert len(failed.tokens) == failed.ends[0].tokens == 2
    assert len(run(engine, [1, 2], 10).tokens) == 10


def test_logits_that_are_no_numbers_are_an_error(make_engine, params):
    engine = make_engine()
    broken = jax.tree.map(lambda leaf: leaf * jnp.nan, params)
    engine._programs = dataclasses.replace(engine._programs, params=broken)
    for score_prompt, message in ((False, "position 1 are not finite"), (True, "in the prompt are not finite")):
        ended = run(engine, [1, 2], 10, score_prompt=score_prompt).ends[0]
        assert ended.reason == "error"
        assert message in str(ended.error)


def test_a_job_taken_while_closing_does_not_run(make_engine, monkeypatch):
    """Between leaving the line and its first step there is a moment; `close` must not miss a job in it."""
    engine, collector, taken, go_on = make_engine(start=False), Collector(), threading.Event(), threading.Event()
    run_job = engine._run
    monkeypatch.setattr(engine, "_run", lambda job: taken.set() or go_on.wait(60) and run_job(job))
    engine.start()
    engine.submit(GenerationRequest((1,), 50), collector)
    taken.wait(60)
    threading.Timer(0.1, go_on.set).start()
    engine.close()
    assert collector.wait().ends == [Finished("cancelled", 0)]


def test_close_does_not_wait_for_a_step_without_end(make_engine, monkeypatch):
    engine, inside, go_on = make_engine(), threading.Event(), threading.Event()
    monkeypatch.setattr(engine_module, "CLOSE_SECONDS", 0.01)
    prefill = steps.prefill_step
    monkeypatch.setattr(steps, "prefill_step", lambda *a: inside.set() or go_on.wait(60) and prefill(*a))
    engine.submit(GenerationRequest((1,), 50), Collector())
    inside.wait(60)
    engine.close()
    assert engine.alive
    go_on.set()
