"""Message batches through a stand-in over real HTTP: round trip, kills, trouble."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from neuroscope_jax.autointerp import batches
from neuroscope_jax.autointerp.batch_calls import Unreachable
from neuroscope_jax.errors import UserError
from tests.autointerp import stand_in
from tests.autointerp.asking import KEY, MODEL, asked, question, questions, served

CHILD = """
    import sys
    from pathlib import Path
    from neuroscope_jax.autointerp import batches
    from neuroscope_jax.autointerp.journal import Journal
    from tests.autointerp.asking import questions, settings
    batches.POLL = 0.05
    with Journal(Path(sys.argv[1])) as journal:
        batches.ask(questions(9), settings(), journal, lambda question, answer: None)
"""


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "POLL", 0.01)
    monkeypatch.setattr(batches, "PAUSE", 0.001)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


def echo(request: stand_in.Request) -> stand_in.Reply:
    return stand_in.answer({**stand_in.fitting(request), "label": stand_in.prompt(request)})


def key(feature: int) -> str:
    return question(feature).key(MODEL)


def test_answers_join_their_questions_at_half_the_price(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, echo) as server:
        answers, usage = asked(questions(30), path, batches.ask)
        assert [len(requests) for requests in server.batches.sent.values()] == [30]
        assert server.requests == 0
        again, known = asked(questions(30), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert {f: answer.fields["label"] for f, answer in answers.items() if answer.fields} == {
        q.feature: q.prompt for q in questions(30)
    }
    assert again == answers
    assert usage.dollars == pytest.approx(30 * (100 * 1 + 20 * 5) / 1e6 / 2)
    assert (usage.paid, known.paid, known.known) == (30, 0, 30)


def test_answers_of_single_calls_are_not_asked_for_in_a_batch(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server:
        asked(questions(4), path)
        _, usage = asked(questions(6), path, batches.ask)
        assert [len(requests) for requests in server.batches.sent.values()] == [2]
    assert (usage.paid, usage.known) == (2, 4)


def test_failures_asked_again_are_kept_and_paid(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, lambda request: stand_in.refusal()):
        asked(questions(3), path, batches.ask)
    with served(monkeypatch, echo) as server:
        again, usage = asked(questions(3), path, batches.ask, retry_failed=True)
        kept, known = asked(questions(3), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert kept == again and all(answer.fields for answer in kept.values())
    assert (usage.paid, known.paid, known.known) == (3, 0, 3)


def test_each_kind_of_failure(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    special = {4: stand_in.refusal(), 5: stand_in.cut_off(), 6: stand_in.answer({"label": "a"})}

    def script(request: stand_in.Request) -> stand_in.Reply:
        feature = int(stand_in.prompt(request).split()[-1])
        return special.get(feature) or stand_in.good(request)

    with served(monkeypatch, script) as server:
        server.batches.outcomes = {key(1): "errored", key(2): "canceled", key(3): "expired", key(7): "missing"}
        answers, usage = asked(questions(9), path, batches.ask)
        assert [answers[feature].failure for feature in range(9)] == [
            None,
            "errored invalid_request_error (too long)",
            "canceled",
            "expired",
            "refusal",
            "cut off",
            "wrong keys: confidence, found missing",
            "no result",
            None,
        ]
        assert (usage.paid, sum(usage.failures.values())) == (5, 7)
        server.batches.outcomes = {}
        again, _ = asked(questions(9), path, batches.ask)
        assert [len(requests) for requests in server.batches.sent.values()] == [9, 4]
    assert [feature for feature in range(9) if again[feature].failure] == [4, 5, 6]


def test_many_questions_go_in_several_batches(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(batches, "MOST_QUESTIONS", 4)
    with served(monkeypatch, echo) as server:
        answers, _ = asked(questions(30), path, batches.ask)
        assert [len(requests) for requests in server.batches.sent.values()] == [4] * 7 + [2]
    assert len(answers) == 30
    assert all(answer.failure is None for answer in answers.values())


def test_a_batch_is_held_back_by_the_budget(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(batches, "MOST_QUESTIONS", 4)
    one = 4 * (100 * 1 + 20 * 5) / 1e6 / 2
    with served(monkeypatch) as server:
        with pytest.raises(UserError, match="--max-usd"):
            asked(questions(30), path, batches.ask, max_usd=4.5 * one)
        sent = len(server.batches.sent)
        assert 1 <= sent <= 4
        _, usage = asked(questions(30), path, batches.ask)
    assert usage.known == 4 * sent


def test_equal_questions_are_sent_once(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    same = [question(feature, "the same for all", f"score:{feature}") for feature in range(5)]
    with served(monkeypatch) as server:
        answers, usage = asked(same, path, batches.ask)
        assert server.calls_of("the same for all") == 1
    assert (len(answers), usage.paid) == (5, 1)


@pytest.mark.parametrize("moment", ["created", "being created", "before it was created"])
def test_a_killed_run_finds_its_batch_again(monkeypatch: pytest.MonkeyPatch, path: Path, moment: str) -> None:
    with served(monkeypatch, echo) as server:
        server.batches.polls_until_ended = 10**9
        if moment != "created":
            server.batches.create_reply = stand_in.hang()
            server.batches.created_all_the_same = moment == "being created"
        command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path)]
        root = Path(__file__).parents[2]
        with subprocess.Popen(command, cwd=root, env=os.environ) as run:
            server.batches.tries.get(timeout=60)
            if moment == "created":
                server.batches.polls.get(timeout=60)
            run.send_signal(signal.SIGKILL)
            assert run.wait(60) != 0
        server.batches.polls_until_ended, server.batches.create_reply = 0, None
        answers, usage = asked(questions(9), path, batches.ask)
        assert len(server.batches.sent) == 1
        assert [server.calls_of(q.prompt) for q in questions(9)] == [1] * 9
    assert usage.paid == 9
    assert all(answer.failure is None for answer in answers.values())


def test_a_batch_of_an_earlier_run_serves_questions_that_come_later(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    """The earlier run asked for more; those left out now are in the journal for the next."""
    with served(monkeypatch, echo) as server:
        server.batches.results_reply = stand_in.error(403, "permission_error")
        with pytest.raises(UserError, match="403"):
            asked(questions(9), path, batches.ask)
        server.batches.results_reply = None
        answers, _ = asked(questions(4), path, batches.ask)
        assert sorted(answers) == [0, 1, 2, 3]
        server.script = stand_in.good
        answers, usage = asked(questions(9), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert usage.known == 9
    assert {f: a.fields["label"] for f, a in answers.items() if a.fields} == {q.feature: q.prompt for q in questions(9)}


def test_single_calls_do_not_pay_again_for_what_is_in_a_batch(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, echo) as server:
        server.batches.results_reply = stand_in.error(403, "permission_error")
        with pytest.raises(UserError, match="403"):
            asked(questions(3), path, batches.ask)
        with pytest.raises(UserError, match="--batch"):
            asked(questions(3), path)
        asked([question(7)], path)
        assert [server.calls_of(q.prompt) for q in questions(3)] == [1] * 3


def test_a_batch_whose_creation_seemed_to_fail_is_not_sent_twice(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, echo) as server:
        server.batches.create_reply = stand_in.error(500, "api_error")
        server.batches.created_all_the_same = True
        answers, _ = asked(questions(9), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert len(answers) == 9


def test_a_busy_server_gets_the_batch_later(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, echo) as server:
        server.batches.create_reply = stand_in.overloaded()
        with pytest.raises(UserError, match="takes no message batch now"):
            asked(questions(9), path, batches.ask)
        server.batches.create_reply = None
        answers, _ = asked(questions(9), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert len(answers) == 9


@pytest.mark.parametrize("reply", [stand_in.html(), stand_in.broken()])
def test_a_proxy_that_answers_instead_is_no_batch(
    monkeypatch: pytest.MonkeyPatch, path: Path, reply: stand_in.Reply
) -> None:
    """It may have passed the request on, so the batches are listed before it is sent again."""
    with served(monkeypatch, echo) as server:
        server.batches.create_reply, server.batches.created_all_the_same = reply, True
        answers, _ = asked(questions(9), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert len(answers) == 9


def test_results_that_break_off_are_read_again(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch, echo) as server:
        server.batches.cut_results = True
        answers, usage = asked(questions(9), path, batches.ask)
    assert (len(answers), usage.paid) == (9, 9)


def test_results_that_stay_unreadable_end_the_run(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(batches, "MOST_LOOKS", 3)
    with served(monkeypatch, echo) as server:
        server.batches.broken_results = True
        with pytest.raises(UserError, match=r"\S+: the results cannot be read.*run the same command again"):
            asked(questions(9), path, batches.ask)
        server.batches.broken_results = False
        answers, _ = asked(questions(9), path, batches.ask)
        assert len(server.batches.sent) == 1
    assert len(answers) == 9


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (stand_in.error(401, "authentication_error", f"bad {KEY}"), "ANTHROPIC_API_KEY"),
        (stand_in.error(413, "request_too_large"), "413"),
        (stand_in.spend_limit(), "spend limit"),
    ],
)
def test_a_batch_that_is_refused_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, path: Path, reply: stand_in.Reply, words: str
) -> None:
    with served(monkeypatch, echo) as server:
        server.batches.create_reply = reply
        with pytest.raises(UserError, match=words) as caught:
            asked(questions(9), path, batches.ask)
        assert KEY not in str(caught.value)
        server.batches.create_reply = None
        answers, _ = asked(questions(9), path, batches.ask)
    assert len(answers) == 9


def test_a_batch_without_any_answer_ends_the_run(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server:
        server.batches.outcomes = {key(feature): "errored" for feature in range(25)}
        with pytest.raises(UserError, match=r"none of its 25 questions.*invalid_request_error \(too long\)"):
            asked(questions(25), path, batches.ask)


def test_a_result_nested_beyond_reading_is_none() -> None:
    with pytest.raises(Unreachable, match="the results cannot be read"):
        batches._decoded('{"a":' * 100_000)


def test_errors_are_told_without_what_a_terminal_obeys(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server:
        server.batches.outcomes = {key(0): "odd\x1b[2J", key(1): "errored"}
        answers, _ = asked(questions(3), path, batches.ask)
    assert answers[0].failure == "odd[U+001B][2J"


def test_a_batch_with_an_odd_name_is_not_the_apis(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    with served(monkeypatch) as server:
        batch = server.batches._batch
        monkeypatch.setattr(server.batches, "_batch", lambda name, url: batch(name, url) | {"id": "b\x1b[2J"})
        with pytest.raises(UserError, match="takes no message batch now"):
            asked(questions(3), path, batches.ask)
