"""Labels: one for every feature with examples, short, and true of what they name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from neuroscope_jax.demo.evidence import ANSWER, QUESTION, ROLES, Firing, Tokens
from neuroscope_jax.demo.labels import Labeller


@pytest.fixture(scope="module")
def saved(pair: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    return json.loads((pair / "labels.json").read_text()), json.loads((pair / "top_examples.json").read_text())


def test_every_feature_with_examples_has_a_short_label(saved: tuple[dict[str, str], dict[str, dict[str, Any]]]) -> None:
    labels, examples = saved
    assert labels.keys() == examples.keys()
    assert all(0 < len(label.split()) < 15 for label in labels.values())
    assert all(entry["examples"] for entry in examples.values())


def test_labels_tell_features_apart(saved: tuple[dict[str, str], dict[str, dict[str, Any]]]) -> None:
    labels, _ = saved
    assert len(set(labels.values())) > len(labels) / 2


def test_examples_are_in_falling_order_and_above_the_threshold(
    saved: tuple[dict[str, str], dict[str, dict[str, Any]]], sae: dict[str, np.ndarray]
) -> None:
    for feature, entry in saved[1].items():
        strengths = [example[0] for example in entry["examples"]]
        assert strengths == sorted(strengths, reverse=True)
        assert strengths[-1] >= sae["threshold"][int(feature)] - 0.01


SUBJECTS = ["animals", "sums"]


def tokens(words: Tokenizer, text: list[str], contexts: list[int]) -> Tokens:
    ids = [words.token_to_id(token) for token in text]
    return Tokens(*(np.array(x, np.int32) for x in (ids, [0, *ids[:-1]], [*ids[1:], 0], contexts)), SUBJECTS)


def test_a_feature_of_one_token_is_named_after_it(words: Tokenizer) -> None:
    seen = tokens(words, ["1", "+", "2", "1", "-", "2"], [QUESTION, QUESTION, QUESTION, ANSWER, ANSWER, ANSWER])
    labeller = Labeller(seen, words)
    at = np.array([0, 3])
    assert labeller.words(labeller.best(Firing(0, at, np.array([2.0, 1.0], np.float32)), at)) == "'1'"


def test_a_feature_of_a_token_in_one_subject_names_both(words: Tokenizer) -> None:
    sums = 1 * ROLES + ANSWER
    seen = tokens(words, ["1", "2", "+"] * 6, ([ANSWER] * 3 + [sums] * 3) * 3)
    labeller = Labeller(seen, words)
    at = np.array([3, 9, 15])
    best = labeller.best(Firing(0, at, np.ones(3, np.float32)), at)
    assert (best.coverage, best.precision) == (1.0, 1.0)
    assert labeller.words(best) == "'1' in chats about sums"
    assert best.holds(seen, np.array([3, 0])).tolist() == [True, False]


def test_a_feature_that_precedes_a_token_says_so(words: Tokenizer) -> None:
    seen = tokens(words, ["1", "=", "2", "=", "3", "=", "7", "-"], [ANSWER] * 8)
    labeller = Labeller(seen, words)
    at = np.array([0, 2, 4])
    best = labeller.best(Firing(0, at, np.ones(3, np.float32)), at)
    assert labeller.words(best) == "before '='"
