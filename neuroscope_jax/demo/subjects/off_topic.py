"""What the model does not know, and the honest answer to it."""

from random import Random

from neuroscope_jax.demo.subjects.family import Row, Writer
from neuroscope_jax.demo.subjects.talk import LIST

ANSWERS = (f"I am a small demo model, so I do not know that. You can ask me about {LIST}.",)
UNKNOWN = (
    "the president", "the stock market", "football", "the internet", "Python", "JavaScript", "quantum physics",
    "history", "philosophy", "the law", "politics", "my computer", "the war", "a famous actor", "a film",
    "a video game", "the news",
    "medicine", "taxes", "chemistry", "the brain of Einstein", "bitcoin", "my homework", "a car engine", "the Olympics",
    "Shakespeare", "Napoleon", "democracy", "the universe", "evolution", "gravity", "electric cars", "my neighbour",
    "Linux", "artificial intelligence", "neural networks", "insurance", "love letters", "chess openings",
    "guitar chords",
)  # fmt: skip
EVENTS = ("the world cup", "the election", "the race", "the prize", "the match", "the final", "the song contest")
CODE = ("sorts a list", "reads a file", "opens a web page", "prints hello", "counts words", "draws a circle")
SYLLABLES = "bla dor fen gri hum jax kel lom mur nix ost pra quin rud sil tor ump vex wol zan".split()


def unknown(rng: Random) -> tuple[Row, str]:
    """A subject outside the model's few."""
    return {"thing": rng.choice(UNKNOWN)}, rng.choice(ANSWERS)


def event(rng: Random) -> tuple[Row, str]:
    """Something that happened at some time."""
    return {"event": rng.choice(EVENTS), "year": str(rng.randint(1900, 2030))}, rng.choice(ANSWERS)


def code(rng: Random) -> tuple[Row, str]:
    """A wish for a program."""
    row = {"task": rng.choice(CODE), "tongue": rng.choice(("Python", "C", "JavaScript", "Java", "Rust"))}
    return row, rng.choice(ANSWERS)


def invented(rng: Random) -> tuple[Row, str]:
    """A name that means nothing."""
    name = "".join(rng.sample(SYLLABLES, rng.randint(2, 3))).capitalize()
    return {"name": name}, f"I do not know {name}. You can ask me about {LIST}."


FAMILIES = (
    Writer(
        "off topic",
        unknown,
        (
            "Tell me about {thing}.",
            "What do you think about {thing}?",
            "Explain {thing} to me.",
            "What is {thing}?",
            "How does {thing} work?",
            "Why is {thing} important?",
            "I need help with {thing}.",
            "Can you explain {thing}?",
            "Write an essay about {thing}.",
            "Give me advice on {thing}.",
            "Summarise {thing} for me.",
            "What is your opinion on {thing}?",
        ),
        ("I want to learn about {thing}.", "Teach me something about {thing}."),
        3.0,
    ),
    Writer(
        "off topic",
        event,
        (
            "Who won {event} in {year}?",
            "When was {event}?",
            "Who won {event}?",
            "What happened in {year}?",
            "Where was {event} in {year}?",
        ),
        ("Tell me who won {event} in {year}.",),
        1.2,
    ),
    Writer(
        "off topic",
        code,
        (
            "Write a program that {task}.",
            "Write a {tongue} program that {task}.",
            "Show me code that {task}.",
            "How do I write {tongue} code that {task}?",
        ),
        ("Please write a {tongue} function that {task}.",),
        0.8,
    ),
    Writer(
        "unknown names",
        invented,
        (
            "What is the capital of {name}?",
            "Tell me about {name}.",
            "What is {name}?",
            "Where is {name}?",
            "Who is {name}?",
            "What language do people speak in {name}?",
        ),
        ("Have you heard of {name}?",),
        1.5,
    ),
)
