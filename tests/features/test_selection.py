"""Features named on a command line."""

import pytest

from neuroscope_jax.features.selection import selected
from neuroscope_jax.flags import UsageError


@pytest.mark.parametrize(
    ("text", "found"),
    [("7", [7]), ("4,3", [4, 3]), ("1,2,5-9", [1, 2, 5, 6, 7, 8, 9]), (" 3 , 1 - 2,3 ", [3, 1, 2]), ("9-9", [9])],
)
def test_numbers_and_ranges(text, found):
    assert selected(text, 10) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,,2", "'' is no feature; expected numbers and ranges"),
        ("one", "'one' is no feature"),
        ("-3", "'-3' is no feature"),
        ("1.5", "'1.5' is no feature"),
        ("٣", "is no feature"),
        ("5-2", "5-2 ends before it begins"),
        ("3,10", "there is no feature 10; the SAE has features 0 to 9"),
        ("0-999999999", "there is no feature 999999999"),
        ("9999999999", "is no feature"),
    ],
)
def test_mistakes_are_named(text, said):
    with pytest.raises(UsageError, match=f"--features '{text}': .*{said}"):
        selected(text, 10)
