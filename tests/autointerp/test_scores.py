"""Scores against figures worked out by hand and by NumPy."""

import math

import numpy as np
import pytest

from neuroscope_jax.autointerp.scores import control, control_pairs, control_size, not_scored, scored
from neuroscope_jax.autointerp.sequences import Sequence
from neuroscope_jax.features.label_details import Control, Score, WrongSequence


def sequences(active: int, silent: int, hard: int = 0) -> list[Sequence]:
    kinds = [(True, False)] * active + [(False, True)] * hard + [(False, False)] * (silent - hard)
    return [Sequence(f"text {i}", *kind) for i, kind in enumerate(kinds)]


def test_by_hand() -> None:
    answers = [True] * 40 + [False] * 10 + [False] * 15 + [True] * 5
    found = scored(sequences(50, 20, 10), answers, "judge-1")
    assert (found.status, found.judge) == ("scored", "judge-1")
    assert (found.tpr, found.tnr, found.balanced_accuracy) == (0.8, 0.75, 0.775)
    variances = (41 / 52) * (11 / 52) / 52 + (16 / 22) * (6 / 22) / 22
    assert found.standard_error == pytest.approx(math.sqrt(variances) / 2, rel=1e-12)
    assert (found.n_active, found.n_silent, found.n_hard, found.n_failed) == (50, 20, 10, 0)
    assert len(found.wrong) == 15
    assert found.wrong[0] == WrongSequence("text 40", was_active=True)
    assert found.wrong[-1] == WrongSequence("text 69", was_active=False)
    assert not found.low_confidence


@pytest.mark.parametrize("answers", [[True] * 70, [False] * 70, [i % 2 == 0 for i in range(70)]])
def test_answers_that_do_not_look_score_one_half(answers: list[bool]) -> None:
    assert scored(sequences(50, 20), answers, "judge").balanced_accuracy == 0.5


def test_against_numpy_whatever_is_answered() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        asked = sequences(50, 20, 10)
        truth = np.array([s.active for s in asked])
        answers = [None if rng.random() < 0.1 else bool(rng.random() < 0.7) for _ in asked]
        given = np.array([a is not None for a in answers])
        right = np.array([a == t for a, t in zip(answers, truth, strict=True)])
        found = scored(asked, answers, "judge")
        rates = [right[given & (truth == kind)] for kind in (True, False)]
        assert [found.tpr, found.tnr] == pytest.approx([r.mean() for r in rates])
        assert found.balanced_accuracy == pytest.approx(np.mean([r.mean() for r in rates]))
        more = [np.append(r, [True, False]) for r in rates]  # one right and one wrong answer more
        variances = [np.var(r) / len(r) for r in more]  # of means of independent draws
        assert found.standard_error == pytest.approx(np.sqrt(sum(variances)) / 2)
        assert (found.n_active, found.n_silent) == tuple(map(len, rates))
        assert found.n_failed == 70 - given.sum()
        assert found.n_hard == sum(s.hard for s, g in zip(asked, given, strict=True) if g)
        assert len(found.wrong) == np.sum(given & ~right)


def test_all_right_is_no_certainty() -> None:
    found = scored(sequences(50, 20), [True] * 50 + [False] * 20, "judge")
    assert found.balanced_accuracy == 1.0
    assert 0.02 < found.standard_error < 0.03


def test_too_few_answers_give_no_score() -> None:
    answers: list[bool | None] = [True] * 50 + [False] * 9 + [None] * 11
    found = scored(sequences(50, 20, 10), answers, "judge")
    assert (found.status, found.balanced_accuracy, found.tpr, found.tnr, found.standard_error) == (
        "insufficient",
        *[None] * 4,
    )
    assert (found.n_active, found.n_silent, found.n_hard, found.n_failed) == (50, 9, 9, 11)
    assert not found.low_confidence
    assert scored(sequences(50, 20), [True] * 50 + [False] * 10 + [None] * 10, "judge").status == "scored"


def test_what_was_never_asked_is_counted_as_it_is() -> None:
    found = not_scored(sequences(4, 20, 10), "judge")
    assert found == Score("insufficient", None, None, None, None, 4, 20, 10, 0, "judge", [])


@pytest.mark.parametrize(
    ("labels", "tried"), [(0, 0), (5, 5), (20, 20), (21, 20), (1000, 20), (1001, 21), (16384, 328)]
)
def test_the_size_of_the_control(labels: int, tried: int) -> None:
    assert control_size(labels) == tried


def test_the_control_takes_another_label() -> None:
    labels = {i * 3: f"label {i}" for i in range(500)}
    pairs = control_pairs(labels, "run")
    assert len(pairs) == 20
    assert all(feature != donor and {feature, donor} <= set(labels) for feature, donor in pairs.items())
    assert control_pairs(dict(reversed(labels.items())), "run") == pairs
    assert control_pairs(labels, "other") != pairs


def test_the_control_of_few_labels() -> None:
    assert control_pairs({}, "run") == {}
    assert control_pairs({4: "greeting"}, "run") == {}
    assert control_pairs({4: "greeting", 9: "farewell"}, "run") == {4: 9, 9: 4}
    assert control_pairs({4: "greeting", 9: "Greeting"}, "run") == {}  # another feature's, but the same


def test_the_controls_mean() -> None:
    scores = [
        scored(sequences(10, 10), [True] * 10 + [False] * 10, "judge"),
        scored(sequences(10, 10), [False] * 10 + [False] * 10, "judge"),
        not_scored(sequences(3, 10), "judge"),
    ]
    found = control(scores)
    assert (found.balanced_accuracy, found.n) == (0.75, 2)
    assert found.standard_error == pytest.approx(np.std([1, 0.5], ddof=1) / np.sqrt(2))
    assert control(scores[:1]) == Control(1.0, 1)
    assert control([]) == Control(None, 0)
