"""Articles rebuilt from WikiText's lines."""

import datasets
import numpy as np
import pytest

from neuroscope_jax.corpus.wikitext import Articles

LINES = [
    "",
    " = Robert Boulter = \n",
    "",
    " Robert Boulter is an English film actor , born in 1 @,@ 980 . \n",
    " He is a well @-@ known one , 1 @.@ 8 metres tall . \n",
    "",
    " = = Career = = \n",
    "",
    " = = = 2000 – 2005 = = = \n",
    "",
    " In 2000 he had a part . \n",
    "",
    " = Headings only = \n",
    "",
    " = = Section = = \n",
    "",
    " = 2 + 2 = 5 = \n",
    "",
    " A formula : \n",
    " = x + y = \n",
    " goes on , and so on @-@ and on . \n",
    "",
]
BOULTER = """= Robert Boulter =
Robert Boulter is an English film actor , born in 1,980 .
He is a well-known one , 1.8 metres tall .
= = Career = =
= = = 2000 – 2005 = = =
In 2000 he had a part ."""
FORMULA = """= 2 + 2 = 5 =
A formula :
= x + y =
goes on , and so on-and on ."""


def articles(lines: list[str | None]) -> Articles:
    return Articles(datasets.Dataset.from_dict({"text": lines}), None, "text", "name")


def test_articles_with_their_sections_and_the_row_of_their_heading() -> None:
    found = articles(LINES)  # type: ignore[arg-type]
    assert found.documents == 2
    assert {d.row: d.text for d in found.choose(9, 0)} == {1: BOULTER, 16: FORMULA}
    assert {d.source for d in found.choose(9, 0)} == {"name"}


def test_lines_before_the_first_title_are_an_article() -> None:
    (found,) = articles(["", " the end of one \n", "", " = B = \n", ""]).choose(9, 0)
    assert (found.row, found.text) == (1, "the end of one")


@pytest.mark.parametrize("lines", [[], [""], [" = A = \n"], ["", None, " \n"]])
def test_nothing_to_read(lines: list[str | None]) -> None:
    assert articles(lines).documents == 0
    assert not list(articles(lines).choose(3, 0))


def test_a_choice_is_seeded_and_spread_over_the_dataset() -> None:
    found = articles([line for i in range(300) for line in ("", f" = {i} = \n", "", f" text {i} \n")])
    rows = [d.row for d in found.choose(60, 0)]
    assert rows == [d.row for d in found.choose(60, 0)]
    assert rows != [d.row for d in found.choose(60, 1)]
    assert len(set(rows)) == 60
    assert rows != sorted(rows)  # so that the first few are spread too
    assert np.histogram(rows, 3, (0, 1200))[0].min() > 5
