"""Words: opposites, plurals, past tenses, first letters."""

from neuroscope_jax.demo.subjects.family import Family, Row, table

PAIRS = table(
    "word other",
    """
    hot, cold
    big, small
    tall, short
    fast, slow
    happy, sad
    old, young
    wet, dry
    hard, soft
    light, dark
    day, night
    up, down
    left, right
    open, closed
    full, empty
    early, late
    rich, poor
    strong, weak
    good, bad
    near, far
    high, low
    loud, quiet
    clean, dirty
    thick, thin
    heavy, light
    first, last
    inside, outside
    begin, end
    love, hate
    push, pull
    win, lose
    buy, sell
    true, false
    sweet, sour
    wide, narrow
    deep, shallow
    brave, afraid
    friend, enemy
    black, white
    always, never
    easy, difficult
    """,
)


def _both_ways(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    known = {row["word"] for row in rows}
    return rows + tuple({"word": r["other"], "other": r["word"]} for r in rows if r["other"] not in known)


OPPOSITES = _both_ways(PAIRS)
PLURALS = table(
    "one many",
    """
    mouse, mice
    child, children
    foot, feet
    tooth, teeth
    goose, geese
    man, men
    woman, women
    leaf, leaves
    knife, knives
    wolf, wolves
    box, boxes
    bus, buses
    city, cities
    baby, babies
    story, stories
    sheep, sheep
    fish, fish
    potato, potatoes
    tomato, tomatoes
    book, books
    dog, dogs
    apple, apples
    house, houses
    tree, trees
    person, people
    """,
)
PASTS = table(
    "now then",
    """
    go, went
    eat, ate
    see, saw
    run, ran
    write, wrote
    take, took
    give, gave
    come, came
    drink, drank
    sing, sang
    swim, swam
    fly, flew
    buy, bought
    think, thought
    bring, brought
    find, found
    make, made
    sleep, slept
    speak, spoke
    know, knew
    walk, walked
    play, played
    cook, cooked
    dance, danced
    fall, fell
    """,
)
FAMILIES = (
    Family(
        "opposites",
        OPPOSITES,
        (
            "What is the opposite of {word}?",
            "What's the opposite of {word}?",
            "Which word is the opposite of {word}?",
            "Tell me the opposite of {word}.",
            "Give me the opposite of {word}.",
            "Name the opposite of {word}.",
            "{word} is the opposite of what?",
            "What is the contrary of {word}?",
            "opposite of {word}",
            "If it is not {word}, what is it?",
        ),
        ("Which word means the opposite of {word}?", "Do you know the opposite of {word}?"),
        ("The opposite of {word} is {other}.",),
        "{other}",
        ("And of {word}?", "And {word}?", "What about {word}?"),
        2.2,
    ),
    Family(
        "plurals",
        PLURALS,
        (
            "What is the plural of {one}?",
            "What's the plural of {one}?",
            "Tell me the plural of {one}.",
            "Give me the plural of {one}.",
            "Which word is the plural of {one}?",
            "One {one}, two what?",
            "How do you say more than one {one}?",
            "plural of {one}",
        ),
        ("Do you know the plural of {one}?", "Name the plural of {one}."),
        ("The plural of {one} is {many}.",),
        "{many}",
        ("And of {one}?", "And {one}?"),
    ),
    Family(
        "past tense",
        PASTS,
        (
            "What is the past tense of {now}?",
            "What's the past of {now}?",
            "Tell me the past tense of {now}.",
            "Give me the past tense of {now}.",
            "Which word is the past tense of {now}?",
            "Today I {now}. What did I do yesterday?",
            "past tense of {now}",
        ),
        ("Do you know the past tense of {now}?", "Name the past tense of {now}."),
        ("The past tense of {now} is {then}.",),
        "{then}",
        ("And of {now}?", "And {now}?"),
    ),
)
