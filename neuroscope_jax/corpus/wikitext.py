"""WikiText: a dataset of lines, from which the articles are rebuilt.

A line ` = Title = ` between two blank lines opens an article; sub-headings such as ` = = Career = = ` belong to it.
The space around each line is taken off, blank lines too, and the marks that WikiText puts inside words and numbers are
undone: `well @-@ known` is `well-known`, `1 @,@ 000` is `1,000`, `2 @.@ 5` is `2.5`. Other punctuation stays as
WikiText has it, apart from the word before it.
"""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroscope_jax.corpus.rows import matching, texts
from neuroscope_jax.corpus.source import Document, Source

DATASET = "Salesforce/wikitext"
TITLE = r"^ = [^=].* = *\n?$"
HEADING = r"^ = .* = *\n?$"
MARK = re.compile(r" @([-,.])@ ")


class Articles(Source):
    """The articles of one split, without those that are headings only."""

    def __init__(self, dataset: Any, commit: str | None, text_field: str, name: str) -> None:
        self.dataset, self.commit, self.text_field, self.name = dataset, commit, text_field, name
        self.bounds = article_bounds(
            *(matching(dataset, text_field, pattern) for pattern in (TITLE, HEADING, r"\S")),
        )

    @property
    def version(self) -> str | None:
        """The commit."""
        return self.commit

    @property
    def documents(self) -> int:
        """How many articles there are."""
        return len(self.bounds)

    def choose(self, many: int, seed: int) -> Iterator[Document]:
        """A random choice, in random order; `row` is that of the article's first line."""
        for number in random.Random(seed).sample(range(self.documents), min(many, self.documents)):
            start, stop = map(int, self.bounds[number])
            yield Document(article(texts(self.dataset, self.text_field, start, stop)), self.name, start)


def article_bounds(title: np.ndarray, heading: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """First row and row after the last of each article that has a text: int [articles, 2], from bool [rows] each.

    Formulas can begin and end with ` = ` too, hence the blank line asked for on both sides of a title.
    """
    blank_before = np.append(True, ~filled[:-1])
    blank_after = np.append(~filled[1:], True)
    starts = np.flatnonzero(title & blank_before & blank_after)
    first = np.flatnonzero(filled)[:1]  # what stands before the first title is an article too
    starts = np.union1d(first, starts).astype(int)
    stops = np.append(starts[1:], len(title)).astype(int)
    bodies = np.append(0, np.cumsum(filled & ~heading))
    return np.stack([starts, stops], axis=1)[bodies[stops] > bodies[starts]] if len(starts) else np.zeros((0, 2), int)


def article(lines: list[str]) -> str:
    """One text of an article's lines."""
    return MARK.sub(r"\1", "\n".join(line.strip() for line in lines if line.strip()))
