"""Questions, settings and a served stand-in for the tests of the API's client."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuroscope_jax.autointerp import claude
from neuroscope_jax.autointerp.journal import Journal
from neuroscope_jax.autointerp.prices import Prices
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.settings import Settings
from neuroscope_jax.autointerp.spending import Usage
from tests.autointerp import stand_in

MODEL = "claude-haiku-4-5-20251001"
KEY = "sk-ant-secret-of-the-test"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "label": {"type": "string"},
        "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
        "found": {"type": "boolean"},
    },
    "required": ["label", "confidence", "found"],
    "additionalProperties": False,
}


def question(feature: int, prompt: str | None = None, part: str = "label") -> Question:
    return Question(feature, "You name features.", prompt or f"the private text of {feature}", SCHEMA, 150, part)


def questions(count: int) -> list[Question]:
    return [question(feature) for feature in range(count)]


def settings(**changed: Any) -> Settings:
    return Settings(**{"model": MODEL, "prices": Prices(1.0, 5.0), "timeout": 5.0, "max_retries": 3, **changed})


@contextlib.contextmanager
def served(monkeypatch: pytest.MonkeyPatch, script: stand_in.Script = stand_in.good) -> Iterator[stand_in.StandIn]:
    """A stand-in that the client library finds by the environment, as a user's proxy would be."""
    with stand_in.running(script) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield server


def asked(
    asks: list[Question], path: Path, ask: Any = claude.ask, retry_failed: bool = False, **changed: Any
) -> tuple[dict[int, Answer], Usage]:
    """The answers of one run by feature, each delivered once, and its usage."""
    answers: dict[int, Answer] = {}

    def keep(question: Question, answer: Answer) -> None:
        assert (question.feature, question.part) == (answer.feature, answer.part)
        assert question.feature not in answers
        answers[question.feature] = answer

    with Journal(path, retry_failed) as journal:
        usage = ask(asks, settings(**changed), journal, keep)
    return answers, usage
