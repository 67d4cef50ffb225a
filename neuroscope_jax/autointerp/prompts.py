"""The question that asks for a feature's label: its examples, the token marked in each, and what is wanted.

Everything that comes from the corpus or the vocabulary stands on lines of its own between tags and is called data.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

from neuroscope_jax.autointerp.evidence import FeatureEvidence, Shown
from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.autointerp.quoting import DATA, NEWLINE, fence, marks, one_line
from neuroscope_jax.features.logits import TokenScore, TokenScores

PROMPT_VERSION = "1"  # to be raised with any change of the words below
STRENGTHS = 10  # activations are shown from 1 to this
WORDS = 15  # a label has fewer
MAX_TOKENS = 250  # of the answer

SYSTEM = f"""\
You name features of a language model. A feature is a number that the model computes at every token of a text: \
mostly zero, and larger the more the feature is present. From texts in which one feature is active you work out what \
it stands for and give it a short name that lets a reader foresee where else it will be active.

The model reads from left to right: whatever makes a feature active is in the marked token or in the text before it. \
What follows the marked token the model had not seen, but a feature may stand for the continuation it expects.

The texts come from a corpus. They {DATA}"""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "One sentence: what the marked tokens and their contexts share."},
        "label": {"type": "string", "description": f"The name of the feature, in fewer than {WORDS} words."},
        "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
    },
    "required": ["pattern", "label", "confidence"],
    "additionalProperties": False,
}


def label_question(evidence: FeatureEvidence, examples_per_feature: int, logits: TokenScores | None = None) -> Question:
    """Ask for the label of a feature that has examples."""
    top = evidence.top[:examples_per_feature]
    strongest = max(example.activation for example in [*top, *evidence.random])
    contexts = [(one_line(e.before), one_line(e.token), one_line(e.after)) for e in [*top, *evidence.random]]
    opening, closing = marks(contexts)
    lines = list(_lines([*top, *evidence.random], contexts, (opening, closing), strongest))
    tokens = [] if logits is None else _output_tokens(logits)
    tag, end = fence("examples", [*lines, *tokens])
    parts = [
        _legend(opening, closing, strongest),
        f"{tag}\nWhere the feature is most active:",
        *lines[: len(top)],
        *(["Where it is active, drawn at random from weak to strong:"] if evidence.random else []),
        *lines[len(top) :],
        *tokens,
        f"{end}\n\n{_request(opening, closing)}",
    ]
    return Question(evidence.feature, SYSTEM, "\n".join(parts), SCHEMA, MAX_TOKENS)


def scaled(activation: float, strongest: float) -> int:
    """An activation as a whole number from 1 to 10, the strongest being 10."""
    return max(1, math.ceil(STRENGTHS * min(activation / strongest, 1)))


def _legend(opening: str, closing: str, strongest: float) -> str:
    return f"""\
Each line below is one text: its number, the activation at the marked token from 1 to {STRENGTHS} and, in parentheses, \
as it was measured (the strongest is {_measured(strongest)}), then the text. The token where the feature is active \
stands between {opening} and {closing}; {NEWLINE} is a newline, … means that the text goes on."""


def _measured(activation: float) -> str:
    """About four digits, without an exponent."""
    return f"{activation:.0f}" if activation >= 1000 else f"{activation:.4g}"


def _lines(
    examples: list[Shown], contexts: list[tuple[str, str, str]], pair: tuple[str, str], strongest: float
) -> Iterator[str]:
    for number, (example, (before, token, after)) in enumerate(zip(examples, contexts, strict=True), 1):
        start, stop = "" if example.cut_before else "…", "" if example.cut_after else "…"
        strength = f"{scaled(example.activation, strongest)} ({_measured(example.activation)})"
        yield f"{number}. {strength}: {start}{before}{pair[0]}{token}{pair[1]}{after}{stop}"


def _output_tokens(logits: TokenScores) -> list[str]:
    """What the feature does to the model's next token, estimated from its decoder direction."""
    return [
        f"Tokens that it makes {what} to come next: {', '.join(map(_quoted, tokens))}"
        for what, tokens in (("likelier", logits.top), ("less likely", logits.bottom))
    ]


def _quoted(token: TokenScore) -> str:
    return json.dumps(one_line(token.text), ensure_ascii=False)


def _request(opening: str, closing: str) -> str:
    return f"""\
Answer with three fields.
pattern: one sentence on what the texts have in common. Look at the marked tokens, at what comes before them and at \
what follows, and say which of these decides. Say whether the texts drawn at random show the same thing.
label: a concise label, under {WORDS} words, for what the feature detects. Cover most of the texts and be as specific \
as they allow: name the word, topic, form or position if they share one, mind spelling and capitals only where they \
matter, and begin with "next:" where only what follows is shared. Write a noun phrase on one line. Do not speak of \
features, neurons, marked tokens or activation, do not use {opening} and {closing}, and do not list alternatives.
confidence: high if nearly all texts, the weak ones too, fit the label; medium if the strong ones do; low if many do \
not."""
