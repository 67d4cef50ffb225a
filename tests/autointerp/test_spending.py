"""Prices, estimates and what a run adds up to."""

from collections.abc import Sequence
from typing import Any

import pytest

from neuroscope_jax.autointerp.prices import Prices, prices_of
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.spending import SAMPLE, Usage, by_tokenizer, characters, estimate, money, typical_answer
from neuroscope_jax.errors import UserError
from tests.autointerp.asking import SCHEMA, question, settings


def test_known_and_given_prices() -> None:
    assert prices_of("claude-haiku-4-5-20251001") == prices_of("claude-haiku-4-5") == Prices(1, 5)
    assert prices_of("claude-haiku-4-5", "0.5,2") == prices_of("other", " .5 , 2.0") == Prices(0.5, 2)
    assert Prices(1, 5).dollars(1_000_000, 100_000) == pytest.approx(1.5)
    assert Prices(1, 5).halved().dollars(1_000_000, 100_000) == pytest.approx(0.75)


def test_a_model_without_known_prices_needs_them() -> None:
    with pytest.raises(UserError, match="claude-new.*--prices IN,OUT"):
        prices_of("claude-new")


@pytest.mark.parametrize("given", ["1", "1,2,3", "-1,2", "a,b", "1;2", ""])
def test_prices_that_are_none(given: str) -> None:
    with pytest.raises(UserError, match="--prices"):
        prices_of("claude-haiku-4-5", given)


@pytest.mark.parametrize(
    ("flag", "changed"),
    [
        ("--concurrency", {"concurrency": 0}),
        ("--rpm", {"rpm": 0.0}),
        ("--timeout", {"timeout": -1.0}),
        ("--max-usd", {"max_usd": float("nan")}),
        ("--max-usd", {"max_usd": float("inf")}),
        ("--timeout", {"timeout": 1e308}),
    ],
)
def test_settings_out_of_range(flag: str, changed: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=flag):
        settings(**changed)


def exact(questions: Sequence[Question]) -> list[int]:
    """A tokenizer of one token in two characters."""
    return [characters(question) // 2 for question in questions]


def mixed() -> list[Question]:
    """Prompts that grow, so that a sample of the first ones would be far off."""
    labels = [question(feature, "x" * (10 * feature)) for feature in range(1000)]
    scores = [question(feature, "y" * 500, f"score:{feature % 7}") for feature in range(300)]
    return [q for pair in zip(labels, [*scores, *[None] * 700], strict=True) for q in pair if q]


def test_the_estimate_is_of_all_questions() -> None:
    guess = estimate(iter(mixed()), lambda question: False, Prices(1, 5), exact, "the test")
    assert guess.calls == 1300
    assert guess.input_tokens == pytest.approx(sum(exact(mixed())), rel=0.01)
    assert guess.dollars == pytest.approx((guess.input_tokens + 5 * guess.output_tokens) / 1e6)
    assert 0 < guess.output_tokens <= 1300 * 150
    assert str(guess).startswith("1,300 calls to make, 0 answered earlier, about ")
    assert "the test" in str(guess)


def test_few_prompts_are_counted() -> None:
    counted = 0

    def count(questions: Sequence[Question]) -> list[int]:
        nonlocal counted
        counted += len(questions)
        return exact(questions)

    estimate(mixed(), lambda question: False, Prices(1, 5), count, "the test")
    assert counted <= 2 * 2 * SAMPLE + 2


def test_what_is_answered_already_costs_nothing() -> None:
    guess = estimate(mixed(), lambda question: question.part == "label", Prices(1, 5), exact, "the test")
    assert (guess.calls, guess.known) == (300, 1000)
    nothing = estimate(mixed(), lambda question: True, Prices(1, 5), exact, "the test")
    assert (nothing.calls, nothing.known, nothing.dollars) == (0, 1300, 0)
    both = guess + nothing
    assert (both.calls, both.known, both.dollars) == (300, 2300, guess.dollars)


def test_answers_are_estimated_by_their_schema() -> None:
    booleans = {"type": "object", "properties": {f"s{i}": {"type": "boolean"} for i in range(10)}}
    assert typical_answer(booleans).count("false") == 10
    assert '"confidence": "high"' in typical_answer(SCHEMA)


def test_another_tokenizer_may_count() -> None:
    (tokens,) = by_tokenizer(len)([question(1)])
    assert tokens == characters(question(1))


def test_usage_adds_up() -> None:
    def answered(failure: str | None) -> Answer:
        return Answer("ab", 1, "label", None if failure else {}, failure, 1000, 100, "")

    one, other = Usage(), Usage(known=3)
    for failure in (None, "refusal", "wrong keys: label missing", "wrong keys: found missing"):
        one.pay(answered(failure), Prices(1, 5))
        one.note(answered(failure))
    other.note(answered("refusal"))
    both = one + other
    assert (both.paid, both.known, both.input_tokens, both.output_tokens) == (4, 3, 4000, 400)
    assert both.dollars == pytest.approx(0.006)
    assert both.failures == {"refusal": 2, "wrong keys": 2}
    assert str(both) == "4 calls, 3 answered earlier; 4,000 tokens read and 400 written, under $0.01"


def test_sums_that_differ_look_different() -> None:
    assert money(20.0) == "$20.00"
    assert money(1234.5) == "$1,234.50"
    assert money(0.0) == money(0.01, 0.01).replace("1", "0") == "$0.00"
    assert money(0.0123, 0.01) == "$0.012"
    assert money(0.0003) == "under $0.01"
    assert money(0.0003, 0.0004) == "$0.0003"
    assert money(20.00001, 20.0) == "$20.00001"


def test_one_is_not_many() -> None:
    assert str(Usage(paid=1, known=1)).startswith("1 call, 1 answered earlier; ")
    assert str(estimate([question(1)], lambda q: False, Prices(1, 5), exact, "x")).startswith("1 call to make, ")


@pytest.mark.parametrize("given", ["9" * 400 + ",1", "1," + "9" * 8])
def test_prices_out_of_range(given: str) -> None:
    with pytest.raises(UserError, match="--prices: expected at most 1,000,000 dollars"):
        prices_of("claude-haiku-4-5", given)
