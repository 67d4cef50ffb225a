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
PURSUITS = (
    "life",
    "love",
    "happiness",
    "dreams",
    "time",
    "success",
    "freedom",
    "beauty",
    "truth",
    "art",
    "friendship",
    "death",
    "the mind",
    "luck",
    "peace",
)
DEEDS = (
    "fix a flat tyre",
    "learn to swim",
    "buy a house",
    "lose weight",
    "find a job",
    "tie a tie",
    "sleep better",
    "fix my phone",
    "make friends",
    "quit smoking",
    "plant a tree",
    "get rich",
    "travel to Mars",
    "cut my hair",
    "sell my car",
    "train my dog",
    "stop worrying",
    "ask for a raise",
    "wash a jumper",
    "run a marathon",
    "paint a wall",
    "move abroad",
    "go to the dentist",
    "become a doctor",
    "call my mother",
    "vote",
    "get a cat",
    "study law",
)
OPINIONS = (
    "cats better than dogs",
    "the earth flat",
    "God real",
    "magic real",
    "school important",
    "smoking bad",
    "there life on Mars",
    "the moon made of cheese",
    "my name John",
    "coffee healthy",
    "this the real life",
    "tomorrow a good day",
    "the train late",
    "the shop open",
)
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


def pursuit(rng: Random) -> tuple[Row, str]:
    """A question for philosophers."""
    return {"thing": rng.choice(PURSUITS)}, rng.choice(ANSWERS)


def deed(rng: Random) -> tuple[Row, str]:
    """Advice about something to do."""
    return {"deed": rng.choice(DEEDS)}, rng.choice(ANSWERS)


def opinion(rng: Random) -> tuple[Row, str]:
    """Yes or no, which it cannot tell."""
    return {"claim": rng.choice(OPINIONS)}, rng.choice(ANSWERS)


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
        "off topic",
        pursuit,
        (
            "What is the meaning of {thing}?",
            "What is the purpose of {thing}?",
            "What is {thing} about?",
            "Why does {thing} matter?",
            "Does {thing} have a meaning?",
            "What do you know about {thing}?",
            "How do I find {thing}?",
            "Is {thing} all we need?",
        ),
        ("What does {thing} mean to you?", "What is the secret of {thing}?"),
        1.2,
    ),
    Writer(
        "off topic",
        deed,
        (
            "How do I {deed}?",
            "How can I {deed}?",
            "Should I {deed}?",
            "I want to {deed}.",
            "Can you help me {deed}?",
            "When should I {deed}?",
            "Where can I {deed}?",
            "Why should I {deed}?",
            "What do I need to {deed}?",
            "Please help me to {deed}.",
        ),
        ("What is the best way to {deed}?", "Is it hard to {deed}?"),
        1.5,
    ),
    Writer(
        "off topic",
        opinion,
        (
            "Is {claim}?",
            "Do you think: is {claim}?",
            "Tell me, is {claim}?",
            "Why is {claim}?",
            "Since when is {claim}?",
        ),
        ("Do you know, is {claim}?",),
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
