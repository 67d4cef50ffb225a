"""Short stories and poems, written from parts that fit together."""

from random import Random

from neuroscope_jax.demo.subjects.family import Row, Writer, article
from neuroscope_jax.demo.subjects.talk import NAMES

HEROES = (
    "cat dog mouse rabbit fox bear owl duck frog horse sheep lion wolf bee hen boy girl king queen farmer sailor baker "
    "dragon princess prince robot bird fish giant witch elephant penguin monkey turtle teacher pirate squirrel "
    "hedgehog pig cow goat goose tiger snake spider child man woman painter doctor knight wizard tree star whale crow"
).split()
PLACES = (
    "in a forest",
    "by the sea",
    "on a farm",
    "in a small village",
    "near a river",
    "on a hill",
    "in an old house",
    "in a big city",
)
TRAITS = "little brave clever shy lazy curious kind hungry young old".split()
TIMES = ("One morning", "One day", "One rainy evening", "One cold night", "One sunny afternoon")
FINDS = (
    ("a golden key", "It opened a small door behind the stairs"),
    ("a lost kitten", "It was cold and afraid"),
    ("a red balloon", "It was caught in a tree"),
    ("an old map", "It showed the way to a hidden lake"),
    ("a big cake", "It was far too large for one"),
    ("a strange egg", "It was warm and it moved a little"),
    ("a broken boat", "There was a hole in its side"),
    ("a letter", "It had no name on it"),
    ("a bright star", "It had fallen from the sky"),
    ("a silver bell", "It rang without a sound"),
)
HELPERS = (
    "a wise owl",
    "a friendly dog",
    "an old fisherman",
    "a kind girl",
    "a small mouse",
    "a tall horse",
    "a merry baker",
)
DEEDS = (
    "They worked together until the sun went down",
    "They laughed and carried it home",
    "They looked for help in the village",
    "They thought about it for a long time",
    "They shared some bread and made a plan",
)
ENDINGS = (
    "In the end everything was well, and they became good friends.",
    "From that day on they were never alone.",
    "That night they slept well and dreamed of new adventures.",
    "And they all lived happily ever after.",
    "Everybody in the village was happy, and there was music until morning.",
)
LESSONS = (
    "It is good to have a friend.",
    "A kind word costs nothing.",
    "Small ones can do great things.",
    "It is never too late to try.",
)


def story(rng: Random) -> tuple[Row, str]:
    """Six to eight sentences about one hero."""
    hero, name, place, trait = rng.choice(HEROES), rng.choice(NAMES), rng.choice(PLACES), rng.choice(TRAITS)
    find, detail = rng.choice(FINDS)
    sentences = [
        f"Once upon a time there was {article(trait)} {hero} called {name}.",
        f"The {hero} lived {place}.",
        f"{rng.choice(TIMES)}, {name} found {find}.",
        f"{detail}.",
        f"{name} did not know what to do and asked {rng.choice(HELPERS)}.",
        f"{rng.choice(DEEDS)}.",
        rng.choice(ENDINGS),
    ]
    if rng.random() < 0.3:
        sentences.append(rng.choice(LESSONS))
    return {"hero": hero, "a_hero": article(hero), "name": name, "place": place}, " ".join(sentences)


def poem(rng: Random) -> tuple[Row, str]:
    """Four lines on one thing."""
    thing, line = rng.choice(
        (
            ("the sun", "The sun is up, the day is bright"),
            ("the moon", "The moon is up, it shines so bright"),
            ("the sea", "The sea is wide, its waves are bright"),
            ("snow", "The snow falls down, the roofs are bright"),
            ("spring", "The spring is here, the fields are bright"),
            ("a cat", "The cat looks up, its eyes are bright"),
        )
    )
    second = rng.choice(("And fills the air with golden light.", "And all the world is full of light."))
    rest = rng.choice(
        (
            "A little bird begins to sing,\nAnd tells the trees of everything.",
            "We sit and watch it from the door,\nAnd could not wish for any more.",
        )
    )
    return {"thing": thing}, f"{line},\n{second}\n{rest}"


FAMILIES = (
    Writer(
        "stories",
        story,
        (
            "Tell me a story about {a_hero}.",
            "Tell me a short story about {a_hero}.",
            "Can you tell me a story about {a_hero}?",
            "Write a story about {a_hero} called {name}.",
            "Tell me a story about {a_hero} {place}.",
            "I would like a story about {a_hero}.",
            "A story about {a_hero}, please.",
            "Once upon a time there was {a_hero}. How does it go on?",
            "Write a short story about {a_hero}.",
        ),
        ("Do you know a story about {a_hero}?", "Make up a story about {a_hero}."),
        4.0,
    ),
    Writer(
        "stories",
        story,
        (
            "Tell me a story.",
            "Tell me a short story.",
            "Write a story.",
            "Can you tell me a story?",
            "I want to hear a story.",
            "Tell me another story.",
        ),
        ("Do you know a good story?",),
        1.2,
    ),
    Writer(
        "poems",
        poem,
        (
            "Write a poem about {thing}.",
            "Tell me a poem about {thing}.",
            "Can you write a poem about {thing}?",
            "A poem about {thing}, please.",
        ),
        ("Do you know a poem about {thing}?",),
        1.0,
    ),
)
