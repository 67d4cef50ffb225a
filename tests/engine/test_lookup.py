"""What is proposed, by hand."""

from neuroscope_jax.engine.lookup import MOST_PROPOSED, Lookup


def test_what_followed_before() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3]
    assert Lookup(text).proposal() == [4, 5, 6, 7, 8, 9, 10]


def test_three_ids_tell_more_than_two() -> None:
    assert Lookup([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2, 3, 20, 21, 1, 2, 3]).proposal()[:3] == [4, 5, 6]


def test_the_last_place_counts() -> None:
    assert Lookup([1, 2, 3, 1, 2, 4, 5, 6, 7, 8, 9, 10, 1, 2]).proposal()[0] == 4


def test_a_text_that_repeats_itself_goes_on_so() -> None:
    assert Lookup([9, 5, 6, 5, 6]).proposal() == [5, 6, 5, 6, 5, 6, 5]
    assert Lookup([7, 7, 7]).proposal() == [7] * MOST_PROPOSED


def test_nothing_that_stood_before() -> None:
    for text in ([], [1], [1, 2], [1, 2, 3, 1], list(range(50))):
        assert Lookup(text).proposal() == []


def test_what_is_appended_counts() -> None:
    lookup = Lookup([1, 2, 3])
    lookup.append(1)
    lookup.append(2)
    assert lookup.proposal()[:2] == [3, 1]


def test_proposals_rest_after_wrong_ones() -> None:
    lookup, asked = Lookup([1, 1, 1]), []
    for _ in range(12):
        asked.append(bool(lookup.proposal()))
        if asked[-1]:
            lookup.came_true(0)
    assert asked == [True, False, True, False, False, False, True, *[False] * 5]
    lookup = Lookup([1, 1, 1])
    lookup.came_true(0)
    lookup.came_true(2)
    assert lookup.proposal(), "after a right one there is no rest"
