"""Animals: sounds, young, legs, food, homes, kinds."""

from neuroscope_jax.demo.subjects.family import Family, Row, article, table

ANIMALS = table(
    "animal plural sound young legs food home kind",
    """
    cat, cats, meow, kitten, four, fish and mice, in a house, mammal
    dog, dogs, woof, puppy, four, meat and bones, in a house, mammal
    cow, cows, moo, calf, four, grass, on a farm, mammal
    horse, horses, neigh, foal, four, grass and hay, in a stable, mammal
    sheep, sheep, baa, lamb, four, grass, on a farm, mammal
    goat, goats, bleat, kid, four, leaves and grass, on a farm, mammal
    pig, pigs, oink, piglet, four, roots and corn, on a farm, mammal
    duck, ducks, quack, duckling, two, water plants, on a pond, bird
    hen, hens, cluck, chick, two, seeds, on a farm, bird
    goose, geese, honk, gosling, two, grass, on a pond, bird
    owl, owls, hoot, owlet, two, mice, in a tree, bird
    lion, lions, roar, cub, four, meat, on the plains, mammal
    tiger, tigers, roar, cub, four, meat, in the jungle, mammal
    bear, bears, growl, cub, four, berries and fish, in the forest, mammal
    wolf, wolves, howl, pup, four, meat, in the forest, mammal
    fox, foxes, yelp, kit, four, mice and berries, in a den, mammal
    mouse, mice, squeak, pup, four, seeds and cheese, in a hole, mammal
    frog, frogs, croak, tadpole, four, flies, on a pond, amphibian
    bee, bees, buzz, larva, six, nectar, in a hive, insect
    snake, snakes, hiss, snakelet, no, mice, under a rock, reptile
    elephant, elephants, trumpet, calf, four, leaves and grass, on the plains, mammal
    monkey, monkeys, chatter, infant, two, fruit, in the jungle, mammal
    rabbit, rabbits, squeak, bunny, four, grass and carrots, in a burrow, mammal
    crow, crows, caw, chick, two, seeds and insects, in a tree, bird
    """,
)
CREATURES = table(
    "animal legs kind",
    """
    spider, eight, arachnid
    ant, six, insect
    butterfly, six, insect
    crab, ten, crustacean
    eagle, two, bird
    penguin, two, bird
    whale, no, mammal
    dolphin, no, mammal
    shark, no, fish
    salmon, no, fish
    lizard, four, reptile
    turtle, four, reptile
    crocodile, four, reptile
    bat, two, mammal
    """,
)


def _with_articles(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    extra = ("animal", "young", "kind", "sound")
    return tuple({**row, **{f"a_{key}": article(row[key]) for key in extra if key in row}} for row in rows)


ROWS = _with_articles(ANIMALS)
ALL = ROWS + _with_articles(CREATURES)

FAMILIES = (
    Family(
        "animal sounds",
        ROWS,
        (
            "What sound does {a_animal} make?",
            "What does {a_animal} say?",
            "What noise does {a_animal} make?",
            "Which sound does the {animal} make?",
            "What sound do {plural} make?",
            "How does {a_animal} sound?",
            "Tell me the sound of {a_animal}.",
            "What does the {animal} say?",
        ),
        ("Which noise does the {animal} make?", "Tell me what sound {a_animal} makes."),
        ("The {animal} says {sound}.", "The sound of {a_animal} is {a_sound}."),
        "{sound}",
        ("And {a_animal}?", "What about {a_animal}?", "And the {animal}?"),
    ),
    Family(
        "animal young",
        ROWS,
        (
            "What is a baby {animal} called?",
            "What do you call a baby {animal}?",
            "What is the young of {a_animal}?",
            "What is a young {animal} called?",
            "What is the name for a baby {animal}?",
            "How do you call a young {animal}?",
            "Name the young of {a_animal}.",
            "What are baby {plural} called?",
        ),
        ("What do you call the young of {a_animal}?", "Tell me the name of a baby {animal}."),
        ("A baby {animal} is called {a_young}.", "The young of {a_animal} is {a_young}."),
        "{young}",
        ("And a baby {animal}?", "What about a baby {animal}?"),
    ),
    Family(
        "animal legs",
        ALL,
        (
            "How many legs does {a_animal} have?",
            "How many legs has {a_animal}?",
            "How many legs are on {a_animal}?",
            "Does {a_animal} have legs?",
            "What number of legs does {a_animal} have?",
            "Count the legs of {a_animal}.",
        ),
        ("Tell me how many legs {a_animal} has.", "How many legs does the {animal} have?"),
        ("{A_animal} has {legs} legs.",),
        "{legs}",
        ("And {a_animal}?", "How many has {a_animal}?"),
    ),
    Family(
        "animal food",
        ROWS,
        (
            "What does {a_animal} eat?",
            "What do {plural} eat?",
            "What do {plural} like to eat?",
            "What is the food of {a_animal}?",
            "What should I feed {a_animal}?",
            "What does the {animal} like to eat?",
        ),
        ("Tell me what {plural} eat.", "Which food does {a_animal} eat?"),
        ("{Plural} eat {food}.", "{A_animal} likes to eat {food}."),
        "{food}",
        ("And {plural}?", "And {a_animal}?"),
    ),
    Family(
        "animal homes",
        ROWS,
        (
            "Where does {a_animal} live?",
            "Where do {plural} live?",
            "Where is the home of {a_animal}?",
            "Where can I find {a_animal}?",
            "Where do {plural} sleep?",
            "In what place does {a_animal} live?",
        ),
        ("Tell me where {plural} live.",),
        ("{Plural} live {home}.", "{A_animal} lives {home}."),
        "{home}",
        ("And {plural}?", "And {a_animal}?"),
    ),
    Family(
        "animal kinds",
        ALL,
        (
            "What kind of animal is {a_animal}?",
            "Which kind of animal is {a_animal}?",
            "Is {a_animal} a mammal?",
            "Is {a_animal} a bird?",
            "What sort of animal is the {animal}?",
            "To which group of animals does {a_animal} belong?",
        ),
        ("Tell me what kind of animal {a_animal} is.",),
        ("{A_animal} is {a_kind}.",),
        "{kind}",
        ("And {a_animal}?",),
    ),
    Family(
        "animals",
        ROWS,
        (
            "Tell me about {plural}.",
            "What is {a_animal}?",
            "What do you know about {plural}?",
            "Describe {a_animal}.",
            "Tell me about the {animal}.",
            "Tell me something about {plural}.",
        ),
        ("Give me some facts about {plural}.",),
        (
            "{A_animal} is {a_kind} with {legs} legs. It lives {home} and eats {food}. It says {sound}, "
            "and its young is called {a_young}.",
        ),
        followups=("And {plural}?", "Tell me about {plural} too."),
        weight=1.2,
    ),
)
