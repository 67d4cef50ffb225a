"""The corpus: reproducible, varied, and free of the phrasings kept for measuring."""

import re
from itertools import islice
from random import Random

from neuroscope_jax.demo.held_out import QUESTIONS
from neuroscope_jax.demo.subjects import FAMILIES
from neuroscope_jax.demo.subjects.family import Family
from neuroscope_jax.demo.text import chats, fill, render
from neuroscope_jax.demo.train_model import TRAINING_SEED

SLOT = re.compile(r"\{\w+\}")


def plain(text: str) -> str:
    """Words only: case, punctuation and spacing do not make a phrasing new."""
    return " ".join(re.findall(r"[a-z0-9+*=-]+", text.lower()))


def training_requests(count: int) -> set[str]:
    return {
        plain(part)
        for chat in islice(chats(TRAINING_SEED), count)
        for turn in chat
        if turn.role == "user"
        for part in turn.text.split("\n\n")
    }


def test_same_seed_gives_the_same_chats_and_another_seed_gives_others() -> None:
    first, again, other = ([render(chat) for chat in islice(chats(seed), 500)] for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_questions_of_the_measurement_are_never_asked_in_training() -> None:
    asked = training_requests(5_000)
    for item in QUESTIONS:
        question = plain(str(item["question"]))
        assert not any(question in request for request in asked), question


def test_no_training_request_has_a_held_out_phrasing() -> None:
    asked = "\n".join(f" {request} " for request in training_requests(5_000))
    for family in FAMILIES:
        for template in family.held_out:
            words = [re.escape(plain(part)) for part in SLOT.split(template)]
            pattern = " ?".join([words[0], *(f"[^\n ]+(?: [^\n ]+)?? ?{part}" for part in words[1:])]) + " \n"
            found = re.search(f"\n {pattern}", asked)
            assert found is None, (template, found)


def test_every_subject_keeps_phrasings_back_and_there_are_many() -> None:
    assert len({family.subject for family in FAMILIES}) >= 14
    for family in FAMILIES:
        assert family.held_out, family.subject
        assert not set(family.held_out) & set(family.questions), family.subject


def test_every_template_can_be_filled_from_its_rows() -> None:
    for family in FAMILIES:
        templates = (*family.questions, *family.held_out, *family.followups)
        rows = family.rows if isinstance(family, Family) else (family.write(Random(0))[0],)
        for row in rows:
            for template in templates + (family.answers if isinstance(family, Family) else ()):
                assert not SLOT.search(fill(template, row))


def test_fifty_different_questions_with_answers() -> None:
    assert len({str(item["question"]) for item in QUESTIONS}) == 50
    assert all(item["answers"] for item in QUESTIONS)


def test_turns_alternate_and_begin_with_the_user() -> None:
    for chat in islice(chats(3), 300):
        assert [turn.role for turn in chat] == ["user", "model"] * (len(chat) // 2)
