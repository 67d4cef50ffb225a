"""Whether what the labeller wrote can be shown as a label: structured output fixes the fields, not what is in them."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal

from neuroscope_jax.autointerp.prompts import WORDS
from neuroscope_jax.autointerp.quoting import one_line

MOST_CHARACTERS, MOST_OF_PATTERN = 100, 400
MOST_MARKS = 4  # combining marks in a row; no script stacks more
JOINERS = "\u200c\u200d"  # that scripts and emoji need between their parts
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef]|[\ufe00-\ufe0f]{2}"
)  # look like nothing
EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
NUMBER = re.compile(r"[-+~≈]?[\d\s.,]+%?")
QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“"}
CONFIDENCES = ("high", "medium", "low")
UNIT = r"(?:features?|neurons?|latents?)"
DOES = "(?:activates?|fires?|responds?|detects?|represents?|captures?|identif(?:y|ies)|encodes?|is active|are active)"
# What a label must not hold, and how that is called in a message.
FAULTS = {
    "holds the marks of the prompt": r"<<\S.*?>>|<<.*?\S>>|[⟪⟫⟦⟧]",
    "speaks of the feature, not of what it stands for": (
        rf"^this {UNIT}\b|\b{UNIT} (?:that |which )?{DOES}\b|^(?:activates (?:on|when|for)|fires when|is active)\b"
    ),
    "is reasoning": (
        r"the user (?:wants|asks|asked|is asking|would like|provided)|^(?:thought|thinking)(?::|\s+the\b)"
        r"|^(?:let me|let's) (?:analy|think|look|see|examine|consider|start|identify)"
        r"|^(?:i (?:think|need|should|will|see|notice|believe)|we (?:need|are asked))\b"
        r"|^(?:okay|ok|alright|sure|hmm)[,.!]|^(?:looking at|based on) the (?:example|text|token|activation|pattern)"
    ),
    "says nothing": (
        r"^(?:unknown|unclear|undetermined|unlabell?ed|none|null|n/?a|label|various|miscellaneous"
        r"|no (?:clear |common |consistent )?pattern)$"
        rf"|^{UNIT}[\s_#:-]*\d+$"
    ),
    "is JSON": r'^\{\s*"|^\[\s*["{]|"(?:label|pattern|confidence)"\s*:',
}


@dataclass(frozen=True)
class Description:
    """A label fit to be shown, and what its maker said about it."""

    label: str
    confidence: Literal["high", "medium", "low"]
    pattern: str


def validated(fields: dict[str, Any]) -> Description | str:
    """The description in the fields of an answer, or what is wrong with it in words."""
    confidence = fields["confidence"]
    if confidence not in CONFIDENCES:
        return f"confidence is {str(confidence)[:20]!r}, expected one of {', '.join(CONFIDENCES)}"
    label = trimmed(fields["label"])
    fault = _fault(label)
    if fault:
        return f"label {fault}: {label[:80]!r}"
    pattern = one_line(" ".join(fields["pattern"].split()))
    if len(pattern) > MOST_OF_PATTERN:
        pattern = pattern[: MOST_OF_PATTERN - 1] + "…"
    return Description(" ".join(label.split()), confidence, pattern)


def trimmed(label: str) -> str:
    """Without space, quotes and full stop around it; the stop of "U.S." stays."""
    label = label.strip()
    if label.endswith(".") and not re.search(r"(?:\.|\W\w)\.$", label):
        label = label[:-1].rstrip()
    if len(label) > 1 and QUOTES.get(label[0]) == label[-1] and not {label[0], label[-1]} & set(label[1:-1]):
        return trimmed(label[1:-1])
    return label


def _fault(label: str) -> str | None:
    """What is wrong with a trimmed label."""
    words = label.split()
    if not words:
        return "is empty"
    if len(label.splitlines()) > 1:
        return "is not on one line"
    if len(label) > MOST_CHARACTERS:
        return f"has {len(label):,} characters, expected at most {MOST_CHARACTERS}"
    if not _can_be_shown(" ".join(words)):
        return "holds characters that cannot be shown"
    if NUMBER.fullmatch(label) or not (EMOJI.search(label) or any(c.isalnum() for c in label)):
        return "holds no word"
    if len(words) >= WORDS:
        return f"has {len(words)} words, expected fewer than {WORDS}"
    return next((fault for fault, rule in FAULTS.items() if re.search(rule, label, re.IGNORECASE)), None)


def _can_be_shown(label: str) -> bool:
    """Whether all of it is seen: nothing blank, joiners only between characters, no tower of combining marks."""
    plain = re.sub(rf"(?<=[^\s{JOINERS}])[{JOINERS}](?=[^\s{JOINERS}])", "", label)
    marks = "".join("m" if unicodedata.combining(c) or unicodedata.category(c) == "Me" else " " for c in label)
    return plain.isprintable() and not BLANK.search(label) and "m" * (MOST_MARKS + 1) not in marks
