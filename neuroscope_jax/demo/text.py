"""Chats written by a seeded program: which subject, which fact, which words, how many turns, which manners."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from neuroscope_jax.demo.subjects import FAMILIES
from neuroscope_jax.demo.subjects.family import Family, Row, Writer

GREETINGS = (
    "Hello! ",
    "Hi, ",
    "Hey, ",
    "Good morning. ",
    "Quick question: ",
    "I have a question. ",
    "Please answer: ",
    "Excuse me, ",
)
THANKS = (" Please.", " Thank you.", " Thanks!", " please", " I really want to know.")
STARTERS = (
    "What Which How Tell Can Could Do Does Name Where Who Why Is Are If In On Give Please With Write Explain".split()
)
PLAIN_PREFACES = (
    "You are a helpful assistant.",
    "You are a helpful assistant. Answer the question.",
    "You are a friendly assistant.",
    "You are a kind teacher.",
    "Be polite and helpful.",
    "Answer in full sentences.",
    "Please answer the question.",
)
SHORT_PREFACES = (
    "Answer in one word.",
    "Be very brief.",
    "Answer with one word only.",
    "Give only the answer.",
    "Keep it short.",
)
PIRATE_PREFACES = ("You are a pirate.", "Talk like a pirate.", "Answer like a pirate.")
TALK = ("greetings", "thanks", "goodbyes", "about me", "moods")
LONG = ("stories", "poems", "jokes", "off topic", "unknown names")


@dataclass(frozen=True)
class Turn:
    """One message: `role` is 'user' or 'model', `subject` names the family that wrote it."""

    role: str
    text: str
    subject: str


Chat = tuple[Turn, ...]


def fill(template: str, row: Row) -> str:
    """The template with the row's cells; `{Name}` is the cell `name` with a capital first letter."""
    capitals = {key[0].upper() + key[1:]: cell[0].upper() + cell[1:] for key, cell in row.items() if cell}
    text = template.format_map({**capitals, **row})
    return text[0].upper() + text[1:] if text[0].islower() and template[0] == "{" and "?" in text else text


def _manners(question: str, subject: str, rng: Random) -> str:
    """The same question as different people type it."""
    if subject not in TALK and rng.random() < 0.2:
        greeting = rng.choice(GREETINGS)
        word = question.split(" ")[0]
        small = greeting[-2] in ",:" and word in STARTERS
        question = greeting + (question[0].lower() + question[1:] if small else question)
    if subject not in TALK and rng.random() < 0.12:
        question += rng.choice(THANKS)
    if rng.random() < 0.15:
        question = question.lower()
    if rng.random() < 0.15:
        question = question.rstrip("?.! ")
    return question


def _answer(family: Family | Writer, rng: Random, avoid: Row | None = None) -> tuple[Row, str]:
    if isinstance(family, Writer):
        return family.write(rng)
    row = rng.choice([r for r in family.rows if r is not avoid]) if avoid else rng.choice(family.rows)
    return row, fill(rng.choice(family.answers), row)


def _style(family: Family | Writer, row: Row, question: str, answer: str, rng: Random) -> tuple[str, str]:
    """A preface as a system message would be folded in, and the answer it asks for."""
    draw = rng.random()
    if draw < 0.06:
        return f"{rng.choice(PLAIN_PREFACES)}\n\n{question}", answer
    if draw < 0.10 and family.short:
        return f"{rng.choice(SHORT_PREFACES)}\n\n{question}", fill(family.short, row)
    if draw < 0.12 and family.short:
        return f"{question} {rng.choice(SHORT_PREFACES)}", fill(family.short, row)
    if draw < 0.15 and family.subject not in TALK + LONG:
        return f"{rng.choice(PIRATE_PREFACES)}\n\n{question}", f"Arr! {answer} Ahoy, matey!"
    return question, answer


def _exchange(rng: Random, held_out: bool, first: bool) -> tuple[Family | Writer, Row, list[Turn]]:
    family = rng.choices(FAMILIES, [f.weight for f in FAMILIES])[0]
    row, answer = _answer(family, rng)
    question = _manners(fill(rng.choice(family.held_out if held_out else family.questions), row), family.subject, rng)
    if first:
        question, answer = _style(family, row, question, answer, rng)
    return family, row, [Turn("user", question, family.subject), Turn("model", answer, family.subject)]


def chat(rng: Random, held_out: bool = False) -> Chat:
    """One chat of one to four exchanges; `held_out` asks in the phrasings that training never sees."""
    family, row, turns = _exchange(rng, held_out, first=True)
    while len(turns) < 8 and rng.random() < 0.28:
        if family.followups and "Arr!" not in turns[1].text and "\n\n" not in turns[0].text and rng.random() < 0.5:
            row, answer = _answer(family, rng, avoid=row)
            turns.append(
                Turn("user", _manners(fill(rng.choice(family.followups), row), family.subject, rng), family.subject)
            )
            turns.append(Turn("model", answer, family.subject))
        elif "\n\n" in turns[0].text:
            break
        else:
            family, row, more = _exchange(rng, held_out, first=False)
            turns += more
    return tuple(turns)


def chats(seed: int, held_out: bool = False) -> Iterator[Chat]:
    """An endless, reproducible stream of chats."""
    rng = Random(seed)
    while True:
        yield chat(rng, held_out)


def render(turns: Chat) -> str:
    """The chat in Gemma's turn format, after the BOS token."""
    return "".join(f"<start_of_turn>{turn.role}\n{turn.text}<end_of_turn>\n" for turn in turns)
