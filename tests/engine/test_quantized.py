"""The demo pair served with quantised weights, beside itself."""

import dataclasses
import logging
from collections.abc import Iterator

import pytest

from neuroscope_jax.config import Quantization, load_preset
from neuroscope_jax.engine.load import Loaded, load
from tests.engine.collect import Collector, run

pytestmark = pytest.mark.slow

DEMO = load_preset("demo")
QUESTIONS = {"What is the capital of France?": "Paris", "What is the capital of Japan?": "Tokyo"}


def loaded(quantization: Quantization) -> Iterator[Loaded]:
    found = load(dataclasses.replace(DEMO, quantization=quantization, context_length=256))
    yield found
    found.engine.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[Loaded]:
    yield from loaded("none")


@pytest.fixture(scope="module")
def quantised() -> Iterator[Loaded]:
    yield from loaded("int8")


def ask(pair: Loaded, question: str) -> tuple[str, Collector]:
    answer = run(pair.engine, pair.tokenizer.encode_chat([("user", question)]), 48)
    return pair.tokenizer.decode(answer.ids), answer


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_stay_right_and_most_features_the_same(plain: Loaded, quantised: Loaded, question: str) -> None:
    (answer, before), (answer_q, after) = ask(plain, question), ask(quantised, question)
    assert QUESTIONS[question] in answer
    assert QUESTIONS[question] in answer_q
    shares = []
    for a, b in zip(before.tokens, after.tokens, strict=False):
        if a.id != b.id:
            break
        tops = [set(token.features[0].indices) for token in (a, b)]
        shares.append(len(tops[0] & tops[1]) / max(map(len, tops)))
    assert len(shares) >= 3
    assert sum(shares) / len(shares) >= 0.9


def test_without_statistics_the_report_is_pointed_to(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("neuroscope_jax.engine.load._stats", lambda *_: None)
    with caplog.at_level(logging.WARNING):
        for found in loaded("int8"):
            assert found.config.quantization == "int8"
    assert "neuroscope_jax quantization report --quantization int8" in caplog.text
