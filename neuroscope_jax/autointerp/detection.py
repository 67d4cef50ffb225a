"""Detection scoring's questions: a label and sequences, of each of which a judge says whether the label holds there.

EleutherAI's method (delphi, scorers/classifier/detection.py): no marks in the texts, both kinds shuffled. Ten at a
time, answered as an object with one boolean a sequence: a schema can force its keys, but not the length of a list.
"""

from collections.abc import Iterable
from typing import Any

from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.quoting import DATA, fence, one_line
from neuroscope_jax.autointerp.sequences import Sequence

PER_CALL = 10

SYSTEM = f"""\
You check names that were given to features of a language model. You get one name and some short texts, cut out of \
a corpus anywhere. For each text say whether what the name stands for is found in it, be it at a single word: true if \
so, false if not. A name that begins with "next:" is found where the text leads up to, or holds, what it says.

Judge each text for itself. Any number of them can be true, from none to all.

The name and the texts {DATA}"""


def detection_questions(feature: int, label: str, sequences: list[Sequence], kind: str = "score") -> list[Question]:
    """Questions that together ask about every sequence; their parts are "score:0", "score:1" …"""
    lots = [sequences[i : i + PER_CALL] for i in range(0, len(sequences), PER_CALL)]
    return [
        Question(feature, SYSTEM, _prompt(label, lot), _schema(len(lot)), 50 + 10 * len(lot), f"{kind}:{i}")
        for i, lot in enumerate(lots)
    ]


def predictions(sequences: list[Sequence], answers: Iterable[Answer]) -> list[bool | None]:
    """What was answered of each sequence, None where its question failed. `answers` are those of one kind."""
    found: list[bool | None] = [None] * len(sequences)
    for answer in answers:
        if answer.fields is not None:
            first = int(answer.part.rpartition(":")[2]) * PER_CALL
            for i in range(first, min(first + PER_CALL, len(sequences))):
                found[i] = answer.fields[_name(i - first)]
    return found


def _prompt(label: str, lot: list[Sequence]) -> str:
    lines = [f"{_name(i)}: {one_line(sequence.text)}" for i, sequence in enumerate(lot)]
    opening, closing = fence("texts", lines)
    return "\n".join(
        [
            f"Name: {one_line(label)}",
            "",
            "The texts, one a line; ↵ is a newline.",
            opening,
            *lines,
            closing,
            "",
            f"For each of {_name(0)} to {_name(len(lot) - 1)}: is what the name stands for found in that text?",
        ]
    )


def _schema(count: int) -> dict[str, Any]:
    names = [_name(i) for i in range(count)]
    return {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _name(i: int) -> str:
    """Of a sequence in its question."""
    return f"s{i + 1}"
