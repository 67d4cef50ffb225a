"""Whether what the labeller wrote can be shown as a label: structured output fixes the fields, not what is in them."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from neuroscope_jax.autointerp.prompts import WORDS
from neuroscope_jax.autointerp.quoting import one_line

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
    ),
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
    return Description(" ".join(label.split()), confidence, one_line(" ".join(fields["pattern"].split())))


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
    if not " ".join(words).isprintable():
        return "holds characters that cannot be shown"
    if len(words) >= WORDS:
        return f"has {len(words)} words, expected fewer than {WORDS}"
    return next((fault for fault, rule in FAULTS.items() if re.search(rule, label, re.IGNORECASE)), None)
