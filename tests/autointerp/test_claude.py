"""Questions to a stand-in over real HTTP: every way a call can end, limits, budget, kill and resume."""

import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroscope_jax.autointerp import claude, client
from neuroscope_jax.autointerp.journal import Journal
from neuroscope_jax.autointerp.pace import Pace
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.errors import UserError
from tests.autointerp import stand_in
from tests.autointerp.asking import KEY, MODEL, asked, question, questions, served, settings

DEEP = "not JSON: expected plain values"
CLEAR = "[U+001B][2J[U+202E]"  # the screen, for a terminal that gets it as it is
SECRETS = (KEY, "the private text")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


class First:
    """A script that gives each prompt some replies first, then good ones."""

    def __init__(self, *replies: stand_in.Reply) -> None:
        self.replies, self.given = replies, dict[str, int]()

    def __call__(self, request: stand_in.Request) -> stand_in.Reply:
        prompt = stand_in.prompt(request)
        number = self.given.get(prompt, 0)
        self.given[prompt] = number + 1
        return self.replies[number] if number < len(self.replies) else stand_in.good(request)


def test_each_question_gets_its_own_answer(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def echo(request: stand_in.Request) -> stand_in.Reply:
        return stand_in.answer({**stand_in.fitting(request), "label": stand_in.prompt(request)})

    with served(monkeypatch, echo):
        answers, usage = asked(questions(30), path)
    assert {feature: answer.fields["label"] for feature, answer in answers.items() if answer.fields} == {
        q.feature: q.prompt for q in questions(30)
    }
    assert (usage.paid, usage.known, usage.input_tokens, usage.output_tokens) == (30, 0, 3000, 600)
    assert usage.dollars == pytest.approx((3000 * 1 + 600 * 5) / 1e6)


def test_what_is_sent(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server:
        asked(questions(1), path)
    (sent,), (headers,) = server.bodies, server.headers
    q = question(0)
    assert sent == {
        "model": MODEL,
        "max_tokens": 150,
        "system": q.system,
        "messages": [{"role": "user", "content": q.prompt}],
        "output_config": {"format": {"type": "json_schema", "schema": q.schema}},
    }
    assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("model", "thinking", "more_tokens"), [("claude-haiku-5-5", True, 0), ("claude-new-9", False, 4096)]
)
def test_models_that_think_have_it_turned_off_or_room_for_it(
    monkeypatch: pytest.MonkeyPatch, path: Path, model: str, thinking: bool, more_tokens: int
) -> None:
    with served(monkeypatch) as server:
        asked(questions(1), path, model=model)
    (sent,) = server.bodies
    assert sent.get("thinking") == ({"type": "disabled"} if thinking else None)
    assert sent["max_tokens"] == 150 + more_tokens


@pytest.mark.parametrize(
    "replies",
    [
        (stand_in.rate_limited(retry_after="0.01"),),
        (stand_in.overloaded(), stand_in.overloaded()),
        (stand_in.error(500, "api_error", retry_after_ms="5"), stand_in.rate_limited(retry_after_ms="5")),
    ],
)
def test_passing_trouble_is_retried(
    monkeypatch: pytest.MonkeyPatch, path: Path, replies: tuple[stand_in.Reply, ...]
) -> None:
    with served(monkeypatch, First(*replies)) as server:
        answers, usage = asked(questions(4), path)
        assert all(answer.failure is None for answer in answers.values())
        assert [server.calls_of(q.prompt) for q in questions(4)] == [len(replies) + 1] * 4
    assert usage.paid == 4


@pytest.mark.parametrize(
    ("reply", "failure", "sent_again"),
    [
        (stand_in.refusal(), "refusal", False),
        (stand_in.cut_off(), "cut off", False),
        (stand_in.message("not { JSON"), "not JSON", False),
        (stand_in.message("[true]"), "not JSON: expected an object", False),
        (stand_in.message(None), "not JSON", False),
        (stand_in.answer({"label": "a", "found": True}), "wrong keys: confidence missing", False),
        (
            stand_in.answer({"label": "a", "confidence": "high", "found": "yes"}),
            "wrong type: found is not a boolean",
            False,
        ),
        (
            stand_in.answer({"label": 1, "confidence": "high", "found": True}),
            "wrong type: label is not a string",
            False,
        ),
        (
            stand_in.answer({"label": "a", "confidence": "sure", "found": True}),
            "wrong value: confidence is none of high, medium, low",
            False,
        ),
        (
            stand_in.answer({"label": "a", "confidence": "low", "found": True, "private": 1}),
            "wrong keys: 1 that were not asked for",
            False,
        ),
        (stand_in.html(), "HTML page", True),
        (stand_in.broken(), "broken JSON", True),
        (stand_in.Reply(b'{"hello": 1}'), "not a message of the API", True),
        (stand_in.Reply(b"\xff\xfe"), "broken JSON", True),
        (stand_in.hang(), "timeout", True),
        (stand_in.Reply(b'{"a":' * 100_000), "broken JSON", True),
        (stand_in.message('{"label": {"a": 1}, "confidence": "low", "found": true}'), DEEP, False),
        (stand_in.message('{"a":' * 100_000), "not JSON", False),
        (stand_in.message("{}", "odd\x1b[31m"), "stopped: odd[U+001B][31m", False),
        (stand_in.message("{}", tokens=(-5, 20)), "usage out of range", True),
        (stand_in.message("{}", tokens=(5, 10**15)), "usage out of range", True),
        (
            stand_in.error(400, "odd\x1b[2J\u202e", "\x1b]0;x\x07 \ud800"),
            f"400 odd{CLEAR} ([U+001B]]0;x[U+0007] ?)",
            True,
        ),
        (stand_in.error(400, KEY, "no"), "400 … (no)", True),
        (stand_in.error(400, "invalid_request_error", "too long"), "400 invalid_request_error (too long)", True),
        (
            stand_in.error(400, "invalid_request_error", f"no: {question(1).prompt} with {KEY}"),
            "400 invalid_request_error",
            True,
        ),
        (stand_in.error(413, "request_too_large", f"key {KEY}"), "413 request_too_large (key …)", True),
        (
            stand_in.error(413, "request_too_large", "x" * 190 + KEY),
            f"413 request_too_large ({'x' * 190}…)",
            True,
        ),
    ],
)
def test_a_feature_that_fails_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, path: Path, reply: stand_in.Reply, failure: str, sent_again: bool
) -> None:
    """The second run asks again where nothing was paid for; with `retry_failed` the third asks in any case."""
    bad = question(1).prompt

    def script(request: stand_in.Request) -> stand_in.Reply:
        return reply if stand_in.prompt(request) == bad else stand_in.good(request)

    with served(monkeypatch, script) as server:
        answers, usage = asked(questions(3), path, timeout=0.15, max_retries=0)
        assert [answers[feature].failure for feature in range(3)] == [None, failure, None]
        assert answers[1].fields is None
        assert sum(usage.failures.values()) == 1
        again, _ = asked(questions(3), path, timeout=0.15, max_retries=0)
        assert (again[1].failure, server.calls_of(bad)) == (failure, 1 + sent_again)
        server.script = stand_in.good
        last, _ = asked(questions(3), path, retry_failed=True)
        assert last[1].failure is None
        assert server.calls_of(question(0).prompt) == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (stand_in.error(401, "authentication_error"), "ANTHROPIC_API_KEY"),
        (stand_in.error(402, "billing_error"), "Billing"),
        (stand_in.error(403, "permission_error"), "permissions"),
        (stand_in.error(404, "not_found_error", "model: claude-none"), "claude-none"),
        (stand_in.spend_limit(), "spend limit"),
        (stand_in.rate_limited(retry_after="7200"), "120 minutes"),
    ],
)
def test_trouble_that_is_not_the_questions_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, path: Path, reply: stand_in.Reply, words: str
) -> None:
    """Answers in flight at that moment are kept."""

    def script(request: stand_in.Request) -> stand_in.Reply:
        slow = stand_in.prompt(request) == question(1).prompt
        return stand_in.answer(stand_in.fitting(request), delay=0.1) if slow else reply

    with served(monkeypatch, script) as server:
        with pytest.raises(UserError, match=words) as caught:
            asked(questions(500), path, concurrency=4)
        assert server.requests <= 5
        assert not any(secret in str(caught.value) for secret in SECRETS)
        server.script = stand_in.good
        _, usage = asked(questions(5), path)
    assert (usage.paid, usage.known) == (4, 1)


def test_a_server_that_is_not_there_ends_the_run(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch):
        pass
    with pytest.raises(UserError, match="20 questions in a row.*no connection"):
        asked(questions(500), path, concurrency=5, max_retries=0)


def test_at_most_so_many_in_flight(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, lambda request: stand_in.answer(stand_in.fitting(request), delay=0.02)) as server:
        asked(questions(30), path, concurrency=6)
    assert server.most_in_flight == 6


def test_every_try_has_its_turn_and_all_wait_when_told(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    rates, turns, holds = [], [], []

    class Recorded(Pace):
        def __init__(self, rpm: float | None) -> None:
            super().__init__(None)
            rates.append(rpm)

        async def turn(self) -> None:
            turns.append(1)

        def hold(self, seconds: float) -> None:
            holds.append(seconds)

    monkeypatch.setattr(client, "Pace", Recorded)
    replies = (
        stand_in.rate_limited(retry_after="0.01"),
        stand_in.rate_limited(retry_after_ms="5"),
        stand_in.overloaded(),
    )
    with served(monkeypatch, First(*replies)) as server:
        asked(questions(3), path, rpm=30)
        assert len(turns) == server.requests == 3 * 4
    assert rates == [30]
    assert sorted(holds) == [0.005] * 3 + [0.01] * 3


def test_questions_are_taken_as_they_can_be_sent(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    taken, delivered, most = 0, 0, 0

    def lazy() -> Iterator[Question]:
        nonlocal taken
        for q in questions(40):
            taken += 1
            yield q

    def count(question: Question, answer: Answer) -> None:
        nonlocal delivered, most
        delivered += 1
        most = max(most, taken - delivered)

    with served(monkeypatch), Journal(path) as journal:
        claude.ask(lazy(), settings(concurrency=4), journal, count)
    assert delivered == 40
    assert most <= 4


def test_equal_questions_are_paid_for_once(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    same = [question(feature, "the same for all", f"score:{feature}") for feature in range(10)]
    with served(monkeypatch, lambda request: stand_in.answer(stand_in.fitting(request), delay=0.02)) as server:
        answers, usage = asked(same, path)
        assert server.calls_of("the same for all") == 1
    assert (usage.paid, usage.known, len(answers)) == (1, 9, 10)
    assert {answer.part for answer in answers.values()} == {f"score:{feature}" for feature in range(10)}


def test_the_budget_stops_a_run_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    cost = (100 * 1 + 20 * 5) / 1e6
    with served(monkeypatch) as server:
        with pytest.raises(UserError, match="--max-usd.*the next call would pass it"):
            asked(questions(20), path, max_usd=5.5 * cost, concurrency=20)
        assert server.requests == 5
        sent = server.requests
        _, usage = asked(questions(20), path)
    assert usage.known == sent
    assert usage.paid == 20 - sent


def test_a_budget_that_the_last_answer_spends_is_no_error(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch):
        answers, _ = asked(questions(1), path, max_usd=1e-9)
    assert answers[0].failure is None


def test_nothing_secret_is_logged(
    monkeypatch: pytest.MonkeyPatch, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with served(monkeypatch, First(stand_in.overloaded())):
        asked(questions(2), path)
    assert not any(secret in caplog.text for secret in SECRETS)
    assert "HTTP Request" not in caplog.text


def test_what_a_callback_raises_reaches_the_caller(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def fail(question: Question, answer: Answer) -> None:
        raise ZeroDivisionError

    with served(monkeypatch), Journal(path) as journal, pytest.raises(ZeroDivisionError):
        claude.ask(questions(9), settings(), journal, fail)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_resumes_and_repeats_no_answered_call(
    monkeypatch: pytest.MonkeyPatch, path: Path, sent: signal.Signals
) -> None:
    """The child answers five questions and hangs on the rest until it is killed."""
    child = """
        import signal, sys
        from pathlib import Path
        from neuroscope_jax.autointerp import claude, client
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background begins without
        from neuroscope_jax.autointerp.journal import Journal
        from tests.autointerp.asking import questions, settings
        with Journal(Path(sys.argv[1])) as journal:
            claude.ask(questions(9), settings(), journal, lambda question, answer: print(answer.feature, flush=True))
    """

    def script(request: stand_in.Request) -> stand_in.Reply:
        answered = stand_in.prompt(request) in [q.prompt for q in questions(5)]
        return stand_in.good(request) if answered else stand_in.hang()

    with served(monkeypatch, script) as server:
        command = [sys.executable, "-c", textwrap.dedent(child), str(path)]
        root = Path(__file__).parents[2]
        with subprocess.Popen(
            command, cwd=root, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as run:
            assert run.stdout is not None
            answered = [int(run.stdout.readline()) for _ in range(5)]
            run.send_signal(sent)
            assert run.wait(60) != 0
        with path.open("ab") as file:
            file.write(b'{"key": "torn')
        server.script = stand_in.good
        answers, usage = asked(questions(9), path)
        assert sorted(answered) == list(range(5))
        assert [server.calls_of(q.prompt) for q in questions(5)] == [1] * 5
    assert (usage.paid, usage.known) == (4, 5)
    assert all(answer.failure is None for answer in answers.values())


def test_a_key_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY is not set"):
        claude.require_key()
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    assert claude.require_key() == {"auth_token": "token"}
    monkeypatch.setenv("ANTHROPIC_API_KEY", " key\n")
    assert claude.require_key() == {"api_key": "key"}
    monkeypatch.setenv("ANTHROPIC_API_KEY", "two words")
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY") as caught:
        claude.require_key()
    assert "two words" not in str(caught.value)


def test_a_token_is_sent_where_there_is_no_key(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a-token")
        asked(questions(1), path)
        assert server.headers[0]["authorization"] == "Bearer a-token"


def test_tokens_are_counted_by_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch):
        short, long = claude.count_tokens([question(0, "a"), question(0, "a" * 400)], settings())
    assert long == pytest.approx(short + 100, abs=1)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (stand_in.error(401, "authentication_error"), "ANTHROPIC_API_KEY"),
        (stand_in.error(400, "invalid_request_error", "too long"), "could not be counted.*too long"),
        (stand_in.html(), "ANTHROPIC_BASE_URL"),
        (stand_in.Reply(b'{"a":' * 100_000), "ANTHROPIC_BASE_URL"),
        (stand_in.Reply(b'{"input_tokens": -1}'), "ANTHROPIC_BASE_URL"),
        (stand_in.Reply(b'{"input_tokens": 1000000000000}'), "ANTHROPIC_BASE_URL"),
        (stand_in.hang(), "no connection"),
    ],
)
def test_tokens_that_cannot_be_counted(monkeypatch: pytest.MonkeyPatch, reply: stand_in.Reply, words: str) -> None:
    with served(monkeypatch) as server:
        server.count_reply = reply
        with pytest.raises(UserError, match=words):
            claude.count_tokens(questions(1), settings(timeout=0.1, max_retries=0))


def test_no_message_of_the_api_reaches_the_terminal_as_it_is(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    reply = stand_in.error(401, "authentication\x1b[31m", "\x1b[2J\u202e no key")
    with served(monkeypatch, lambda request: reply), pytest.raises(UserError) as caught:
        asked(questions(1), path)
    assert f"401 authentication[U+001B][31m ({CLEAR} no key)" in str(caught.value)
    assert str(caught.value).isprintable()


def test_calls_in_flight_count_for_the_budget(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """None of the twenty is answered while the others are sent, yet no more are sent than may be paid."""
    cost = (100 * 1 + 20 * 5) / 1e6
    with served(monkeypatch, lambda request: stand_in.answer(stand_in.fitting(request), delay=0.05)) as server:
        with pytest.raises(UserError, match="--max-usd"):
            asked(questions(40), path, max_usd=10 * cost, concurrency=20)
        assert server.requests <= 10
        assert server.most_in_flight < 10
        answers, _ = asked(questions(40), path, max_usd=100 * cost, concurrency=20)
    assert len(answers) == 40


def test_what_earlier_rounds_spent_is_not_there_again(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server, pytest.raises(UserError, match=r"--max-usd 1 is spent \(\$1.50, more than was"):
        asked(questions(1), path, max_usd=1.0, spent=1.5)
    assert server.requests == 0


def test_waiting_is_told_now_and_then(
    monkeypatch: pytest.MonkeyPatch, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(monkeypatch, First(*[stand_in.overloaded()] * 3)):
        asked(questions(20), path)
    (told,) = [r.getMessage() for r in caplog.records if r.name == client.logger.name]
    assert re.fullmatch(
        r"\d+ tries of calls were repeated \(cut off, not answered, a busy server\); still trying", told
    )
    assert not any(secret in told for secret in SECRETS)


def test_passing_trouble_is_not_worth_a_line(
    monkeypatch: pytest.MonkeyPatch, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(monkeypatch, First(stand_in.overloaded())):
        asked(questions(20), path)
    assert client.logger.name not in {record.name for record in caplog.records}
