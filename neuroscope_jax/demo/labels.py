"""A short label for every feature: the plainest description that covers its activations and little else.

A description is a set of tokens (the token itself, the one before or the one after) within contexts (subject, question
or answer). Its score is the F1 of two shares: of the strong activation (half its maximum and more) that it covers, and
of the places where it holds at which the feature fires; how many of the strongest examples it fits counts too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Tokenizer

from neuroscope_jax.demo.evidence import ANSWER, OPENING, QUESTION, ROLES, Firing, Tokens
from neuroscope_jax.demo.tokenizer import END_OF_TURN, NEWLINE, START_OF_TURN

MOST_TOKENS = 12
NAMED_TOKENS = 3
MOST_WORDS = 14
STRONG = 0.5  # of the feature's maximum: weaker activations do not speak for what it means
COST_OF_TOKEN, COST_OF_CONTEXT = 0.99, 0.97
SPOKEN = {"off topic": "unknown things", "about me": "itself"}
SIDES = ("here", "before", "after")
Shares = np.ndarray | np.floating


@dataclass(frozen=True)
class Context:
    """Tokens of some subjects (None: of any) and roles; `members` are the context numbers."""

    subjects: tuple[int, ...] | None
    role: int | None
    members: Bool[np.ndarray, " contexts"]


@dataclass(frozen=True)
class Description:
    """Tokens `ids` (empty: any) on `side` of the place, within `context`; `coverage` and `precision` are shares."""

    side: str
    ids: tuple[int, ...]
    context: Context
    coverage: float
    precision: float
    score: float

    def holds(self, tokens: Tokens, at: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Whether it describes the tokens `at`."""
        inside: np.ndarray = self.context.members[tokens.contexts[at]]
        return inside & np.isin(getattr(tokens, self.side)[at], self.ids) if self.ids else inside


class Labeller:
    """Finds and words the best description of a feature over one set of tokens."""

    def __init__(self, tokens: Tokens, tokenizer: Tokenizer) -> None:
        self.tokens, self.tokenizer = tokens, tokenizer
        self.kinds = len(tokens.subjects) * ROLES
        self.vocab = tokenizer.get_vocab_size()
        self.totals = {side: self._table(side, slice(None), None) for side in SIDES}

    def _table(self, side: str, at: slice | np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        cells = getattr(self.tokens, side)[at].astype(np.int64) * self.kinds + self.tokens.contexts[at]
        return np.bincount(cells, weights, minlength=self.vocab * self.kinds).reshape(self.vocab, self.kinds)

    def best(self, firing: Firing, top: Int[np.ndarray, " t"]) -> Description:
        """The highest score, halved where it fits none of the places `top`; the tokens of those are named first."""
        found = []
        strong = firing.values * (firing.values >= STRONG * firing.values.max())
        mass = np.bincount(self.tokens.contexts[firing.at], strong, minlength=self.kinds)
        contexts = list(self._contexts(mass))
        for side in SIDES:
            ids = np.unique(getattr(self.tokens, side)[firing.at])
            masses = self._table(side, firing.at, strong)[ids]
            counts = self._table(side, firing.at, None)[ids]
            for context in contexts:
                found.append(self._best_tokens(side, context, ids, masses, counts))
        found += [
            self._whole(context, firing, strong) for context in contexts if context.role is not None or context.subjects
        ]
        best = max(found, key=lambda description: description.score * (1 + description.holds(self.tokens, top).mean()))
        seen = getattr(self.tokens, best.side)[top].tolist()
        return replace(best, ids=tuple(sorted(best.ids, key=lambda token: -seen.count(token))))

    def _contexts(self, mass: np.ndarray) -> Iterator[Context]:
        """Anything; one role; the one or two heaviest subjects, with and without a role."""
        by_subject = mass.reshape(-1, ROLES).sum(1)
        heaviest = [int(s) for s in np.argsort(-by_subject, kind="stable")[:2] if by_subject[s] > 0]
        choices = [None, *(tuple(heaviest[: n + 1]) for n in range(len(heaviest)))]
        for subjects in choices:
            for role in (None, QUESTION, ANSWER, OPENING):
                members = np.zeros((len(self.tokens.subjects), ROLES), bool)
                members[slice(None) if subjects is None else list(subjects), slice(None) if role is None else role] = (
                    True
                )
                yield Context(subjects, role, members.reshape(-1))

    def _best_tokens(
        self, side: str, context: Context, ids: np.ndarray, masses: np.ndarray, counts: np.ndarray
    ) -> Description:
        """Tokens are added by the activation they hold for as long as the score grows."""
        inside = context.members
        mass, fired = masses[:, inside].sum(1), counts[:, inside].sum(1)
        total = self.totals[side][ids][:, inside].sum(1)
        order = np.argsort(-mass * fired / np.maximum(total, 1), kind="stable")[:MOST_TOKENS]
        coverage = np.cumsum(mass[order]) / masses.sum()
        precision = np.cumsum(fired[order]) / np.maximum(np.cumsum(total[order]), 1)
        score = _f1(coverage, precision) * COST_OF_TOKEN ** np.arange(len(order)) * self._cost(context)
        n = int(np.argmax(score))
        chosen = tuple(int(i) for i in ids[order[: n + 1]])
        return Description(side, chosen, context, float(coverage[n]), float(precision[n]), float(score[n]))

    def _whole(self, context: Context, firing: Firing, strong: np.ndarray) -> Description:
        inside = context.members[self.tokens.contexts[firing.at]]
        coverage = np.float64(strong[inside].sum() / strong.sum())
        precision = np.float64(inside.sum()) / max(1, context.members[self.tokens.contexts].sum())
        score = float(_f1(coverage, precision) * self._cost(context))
        return Description("here", (), context, float(coverage), float(precision), score)

    @staticmethod
    def _cost(context: Context) -> float:
        parts = (context.role is not None) + len(context.subjects or ())
        return float(COST_OF_CONTEXT**parts)

    def words(self, description: Description) -> str:
        """The description as a label of at most MOST_WORDS words."""
        labels = [self._label(description, room) for room in range(NAMED_TOKENS, 0, -1)]
        return next((label for label in labels if len(label.split()) <= MOST_WORDS), labels[-1])

    def _label(self, description: Description, room: int) -> str:
        """The description, naming at most `room` of its tokens."""
        where = self._where(description.context)
        if not description.ids:
            return where
        by_word = {name.lower(): name for name in map(self._name, reversed(description.ids))}
        names = list(reversed(by_word.values()))
        many, names = len(names) > room, names[:room]
        listed = ("words like " if many else "") + (", ".join(names[:-1]) + " or " * (len(names) > 1) + names[-1])
        side = {"here": "", "before": "after ", "after": "before "}[description.side]
        anywhere = description.context.subjects is None and description.context.role is None
        return f"{side}{listed}" + ("" if anywhere else f" {where}")

    def _name(self, token: int) -> str:
        special = {END_OF_TURN: "the end", NEWLINE: "a newline", START_OF_TURN: "a new turn"}
        text = str(self.tokenizer.id_to_token(token)).replace("▁", " ").strip()
        return special.get(token) or (f"'{text}'" if text else "a space")

    def _where(self, context: Context) -> str:
        role = {None: "in chats", QUESTION: "in questions", ANSWER: "in answers", OPENING: "starting answers"}[
            context.role
        ]
        if context.subjects is None:
            return role
        names = [SPOKEN.get(self.tokens.subjects[s], self.tokens.subjects[s]) for s in context.subjects]
        return f"{role} about {' or '.join(names)}"


def _f1(coverage: Shares, precision: Shares) -> Shares:
    return 2 * coverage * precision / np.maximum(coverage + precision, 1e-9)
