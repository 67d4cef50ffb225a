"""What a subject is made of: tables of facts and the sentences that ask for them and state them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

Row = dict[str, str]


def table(columns: str, text: str) -> tuple[Row, ...]:
    """Rows of a small table: `columns` separated by spaces, one row a line, cells separated by commas."""
    names = columns.split()
    rows = []
    for line in text.strip().splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(names):
            raise ValueError(f"a row of ({columns}) has {len(cells)} cells: {line!r}")
        rows.append(dict(zip(names, cells, strict=True)))
    return tuple(rows)


def article(noun: str) -> str:
    """'a cat', 'an owl'."""
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


@dataclass(frozen=True)
class Family:
    """Facts of one kind. Templates are `str.format` strings over a row's columns.

    `questions` are used in training, `held_out` never; `short` is the answer in a word or two;
    `followups` ask for another row when the turn before was of the same family.
    """

    subject: str
    rows: tuple[Row, ...]
    questions: tuple[str, ...]
    held_out: tuple[str, ...]
    answers: tuple[str, ...]
    short: str = ""
    followups: tuple[str, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Writer:
    """A subject whose answers are written afresh each time: a function of the generator to (row, answer)."""

    subject: str
    write: Callable[[Random], tuple[Row, str]]
    questions: tuple[str, ...]
    held_out: tuple[str, ...]
    weight: float = 1.0
    short: str = ""
    followups: tuple[str, ...] = field(default=())
