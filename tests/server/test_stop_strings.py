"""Stop strings against an oracle that sees the whole text, over every way to cut it."""

import itertools
import random

import pytest

from server.stop_strings import StopStrings


def oracle(text: str, stops: list[str]) -> tuple[str, bool]:
    """Read on, character by character, until what was read ends in a stop string; of several the longest counts."""
    for end in range(len(text) + 1):
        endings = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if endings:
            return text[: end - max(map(len, endings))], True
    return text, False


def streamed(pieces: list[str], stops: list[str]) -> tuple[str, bool, list[str]]:
    filter_ = StopStrings(stops)
    shown = [filter_.push(piece) for piece in pieces]
    return "".join([*shown, filter_.flush()]), filter_.found, shown


def pieces_of(rng: random.Random, text: str) -> list[str]:
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(6)))
    return [text[i:j] for i, j in itertools.pairwise([0, *cuts, len(text)])]


@pytest.mark.parametrize("seed", range(20))
def test_equals_oracle_however_the_text_is_cut(seed):
    rng = random.Random(seed)
    for _ in range(300):
        text = "".join(rng.choices("ab\n", k=rng.randrange(16)))
        stops = ["".join(rng.choices("ab\n", k=rng.randrange(5))) for _ in range(rng.randrange(5))]
        result, found, shown = streamed(pieces_of(rng, text), stops)
        assert (result, found) == oracle(text, stops), (text, stops)
        assert result.startswith("".join(shown)), "something was shown and taken back"


def test_stop_over_three_tokens_shows_no_part_of_it():
    assert streamed(["ab", "cd", "ef"], ["bcde"]) == ("a", True, ["a", "", ""])


def test_ordinary_text_is_not_held_back():
    assert streamed(["hello ", "world"], ["\nUser:"])[2] == ["hello ", "world"]


def test_only_what_may_be_a_start_is_held_back():
    assert streamed(["one\n", "two"], ["\nUser:"])[2] == ["one", "\ntwo"]


def test_nothing_follows_a_match():
    assert streamed(["x.", "y", "z"], ["."]) == ("x", True, ["x", "", ""])


def test_empty_stop_strings_stop_nothing():
    assert streamed(["a", "b"], ["", ""]) == ("ab", False, ["a", "b"])
