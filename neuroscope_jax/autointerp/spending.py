"""What a run costs: counted as answers come, estimated before the first is asked for."""

import collections
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from neuroscope_jax.autointerp.prices import MILLION, Prices
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.quoting import message

SAMPLE = 16  # prompts of a kind whose tokens are counted
CHARACTERS_A_TOKEN = 4  # of English, about
MOST_DIGITS = 10  # of a sum in dollars, behind the point
TYPICAL_WORDS = 15  # of a text that is asked for

Count = Callable[[Sequence[Question]], Sequence[int]]  # tokens that the model reads for each question


@dataclasses.dataclass
class Usage:
    """What came of the questions of a run."""

    paid: int = 0  # calls that brought an answer of the model in this run
    known: int = 0  # answers that earlier runs had paid for
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    failures: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)  # of all, by kind

    def pay(self, answer: Answer, prices: Prices) -> None:
        """Count what a new answer cost."""
        self.paid += 1
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens
        self.dollars += prices.dollars(answer.input_tokens, answer.output_tokens)

    def note(self, answer: Answer) -> None:
        """Count a failure, new or known."""
        if answer.failure:
            self.failures[kind_of(answer.failure)] += 1

    def __add__(self, other: "Usage") -> "Usage":
        pairs = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in dataclasses.fields(self)}
        return Usage(**pairs)

    def __str__(self) -> str:
        tokens = _tokens(self.input_tokens, self.output_tokens)
        return f"{counted(self.paid, 'call')}, {self.known:,} answered earlier; {tokens}, {money(self.dollars)}"


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a run will ask for and cost, about."""

    calls: int
    known: int  # questions answered already
    input_tokens: int
    output_tokens: int
    dollars: float
    counted_by: str

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            self.calls + other.calls,
            self.known + other.known,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.dollars + other.dollars,
            self.counted_by,
        )

    def __str__(self) -> str:
        return self.beside(0.0)

    def beside(self, limit: float) -> str:
        """In words, its dollars with as many digits as tell them from `limit`."""
        tokens = _tokens(self.input_tokens, self.output_tokens)
        return (
            f"{counted(self.calls, 'call')} to make, {self.known:,} answered earlier, about {tokens}, "
            f"{money(self.dollars, limit)} (tokens counted by {self.counted_by})"
        )


@dataclasses.dataclass
class _Kind:
    """The questions of one kind, labels say: how many, how long, and a sample spread over all of them."""

    calls: int = 0
    characters: int = 0
    stride: int = 1
    sample: list[Question] = dataclasses.field(default_factory=list)

    def add(self, question: Question) -> None:
        if self.calls % self.stride == 0:
            self.sample.append(question)
        if len(self.sample) == 2 * SAMPLE:
            self.sample = self.sample[::2]
            self.stride *= 2
        self.calls += 1
        self.characters += characters(question)

    def tokens(self, count: Count) -> tuple[float, float]:
        """Tokens read and written by all."""
        typical = [dataclasses.replace(q, system="", prompt=typical_answer(q.schema)) for q in self.sample[:1]]
        *read, written = count([*self.sample, *typical])
        read_a_character = sum(read) / sum(map(characters, self.sample))
        return self.characters * read_a_character, self.calls * min(written, self.sample[0].max_tokens)


def estimate(
    questions: Iterable[Question], known: Callable[[Question], bool], prices: Prices, count: Count, counted_by: str
) -> Estimate:
    """Go through the questions once, in flat memory, and count the tokens of a sample of those not `known`.

    The sample's tokens a character hold for the other prompts; answers are taken as a typical one of their schema.
    """
    kinds: dict[str, _Kind] = collections.defaultdict(_Kind)
    answered = 0
    for question in questions:
        if known(question):
            answered += 1
        else:
            kinds[question.part.partition(":")[0]].add(question)
    tokens = [kind.tokens(count) for kind in kinds.values()]
    read, written = (round(sum(column)) for column in zip(*tokens, strict=True)) if tokens else (0, 0)
    calls = sum(kind.calls for kind in kinds.values())
    return Estimate(calls, answered, read, written, prices.dollars(read, written), counted_by)


def kind_of(failure: str) -> str:
    """What failures are counted by: the words before their particulars."""
    return message(failure.partition(":")[0].partition(" (")[0])


def counted(count: int, noun: str) -> str:
    """1 call, 2 calls."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def money(dollars: float, other: float = 0.0) -> str:
    """In cents, with further digits where it would look the same as another sum that it is not."""
    if not other and 0 < dollars < 0.01:
        return "under $0.01"
    digits = next((n for n in range(2, MOST_DIGITS) if round(dollars, n) != round(other, n)), 2)
    return f"${dollars:,.{digits}f}"


def rough_dollars(question: Question, prices: Prices) -> float:
    """A cost without any counting, to hold a batch back that would pass the budget."""
    return prices.dollars(characters(question) / CHARACTERS_A_TOKEN, question.max_tokens / 2)


def characters(question: Question) -> int:
    """What the model reads, in characters."""
    return len(question.system) + len(question.prompt) + len(json.dumps(question.schema))


def by_tokenizer(count: Callable[[str], int]) -> Count:
    """Count with another model's tokenizer, for an estimate without a key."""
    return lambda questions: [count(q.system + q.prompt + json.dumps(q.schema)) for q in questions]


def typical_answer(schema: dict[str, Any]) -> str:
    """An answer of ordinary length."""
    made = {"boolean": False, "integer": 10, "number": 0.5, "string": " ".join(["words"] * TYPICAL_WORDS)}
    return json.dumps({n: k["enum"][0] if "enum" in k else made[k["type"]] for n, k in schema["properties"].items()})


def _tokens(read: int, written: int) -> str:
    return f"{_count(read)} tokens read and {_count(written)} written"


def _count(tokens: int) -> str:
    return f"{tokens / MILLION:,.2f} M" if tokens >= MILLION / 10 else f"{tokens:,}"
