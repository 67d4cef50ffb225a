"""The world around: colours, planets, weather, plants."""

from neuroscope_jax.demo.subjects.family import Family, table

COLOURS = table(
    "thing verb colour",
    """
    the sky, is, blue
    grass, is, green
    snow, is, white
    a banana, is, yellow
    a strawberry, is, red
    an orange, is, orange
    coal, is, black
    a lemon, is, yellow
    a carrot, is, orange
    blood, is, red
    the sea, is, blue
    milk, is, white
    chocolate, is, brown
    the sun, is, yellow
    a leaf, is, green
    a tomato, is, red
    a frog, is, green
    a flamingo, is, pink
    an elephant, is, grey
    a crow, is, black
    a swan, is, white
    a plum, is, purple
    a pig, is, pink
    a cucumber, is, green
    a pumpkin, is, orange
    a cloud, is, white
    a fire engine, is, red
    wood, is, brown
    a bear, is, brown
    the night, is, black
    """,
)
MIXES = table(
    "a b mix",
    """
    red, blue, purple
    blue, yellow, green
    red, yellow, orange
    red, white, pink
    black, white, grey
    red, green, brown
    """,
)
MIXED = MIXES + tuple({"a": row["b"], "b": row["a"], "mix": row["mix"]} for row in MIXES)
PLANETS = table(
    "planet place size fact",
    """
    Mercury, first, small, It is the closest planet to the sun
    Venus, second, hot, It is covered in thick clouds
    Earth, third, blue, It is the planet we live on
    Mars, fourth, red, It is cold and dusty
    Jupiter, fifth, giant, It is the largest planet
    Saturn, sixth, giant, It has bright rings
    Uranus, seventh, cold, It lies on its side
    Neptune, eighth, cold, It is the farthest planet from the sun
    """,
)
WEATHER = table(
    "what clothes doing",
    """
    rain, a raincoat and boots, take an umbrella
    snow, a warm coat and gloves, build a snowman
    sun, a hat and a light shirt, drink plenty of water
    wind, a warm jacket, fly a kite
    fog, bright clothes, walk slowly
    frost, a scarf and thick socks, watch out for ice
    storm, warm clothes, stay inside
    heat, light clothes, rest in the shade
    """,
)
CAUSES = table(
    "what is_ because",
    """
    rain, water that falls from clouds, clouds grow heavy with water
    snow, frozen water that falls from clouds, the air is very cold
    wind, moving air, warm air rises and cold air moves in
    fog, a cloud close to the ground, damp air cools near the ground
    frost, thin ice on the ground, the night is cold and clear
    thunder, the sound of lightning, lightning heats the air
    lightning, a great spark in the sky, clouds are full of electricity
    hail, balls of ice that fall from clouds, drops freeze high in a storm
    a rainbow, a bow of colours in the sky, sunlight shines through rain
    a cloud, many tiny drops of water in the air, warm damp air rises and cools
    ice, frozen water, water gets very cold
    dew, small drops of water on the grass, the night air cools
    """,
)
ORDER = "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune"

FAMILIES = (
    Family(
        "colours",
        COLOURS,
        (
            "What colour is {thing}?",
            "Which colour is {thing}?",
            "What is the colour of {thing}?",
            "What color is {thing}?",
            "Tell me the colour of {thing}.",
            "Which colour does {thing} have?",
            "What colour does {thing} have?",
            "{thing} is what colour?",
            "Do you know what colour {thing} is?",
        ),
        ("Tell me what colour {thing} is.", "Name the colour of {thing}."),
        ("{Thing} {verb} {colour}.", "The colour of {thing} is {colour}."),
        "{colour}",
        ("And {thing}?", "What about {thing}?"),
        1.3,
    ),
    Family(
        "mixing colours",
        MIXED,
        (
            "What colour do you get when you mix {a} and {b}?",
            "What do {a} and {b} make?",
            "Mix {a} and {b}. What colour do you get?",
            "What colour do {a} and {b} make?",
            "If I mix {a} with {b}, which colour do I get?",
            "What is {a} mixed with {b}?",
        ),
        ("Which colour do {a} and {b} make?",),
        ("{A} and {b} make {mix}.",),
        "{mix}",
        ("And {a} and {b}?",),
        0.7,
    ),
    Family(
        "planets",
        PLANETS,
        (
            "Tell me about {planet}.",
            "What is {planet}?",
            "What do you know about {planet}?",
            "Describe the planet {planet}.",
            "Tell me something about the planet {planet}.",
        ),
        ("Give me some facts about {planet}.",),
        ("{planet} is the {place} planet from the sun. It is a {size} planet. {fact}.",),
        followups=("And {planet}?",),
        weight=0.7,
    ),
    Family(
        "planets",
        PLANETS,
        (
            "Which planet is the {place} from the sun?",
            "What is the {place} planet?",
            "Name the {place} planet from the sun.",
            "Which planet is {place}?",
            "What is the {place} planet from the sun?",
        ),
        ("Tell me the {place} planet from the sun.",),
        ("The {place} planet from the sun is {planet}.",),
        "{planet}",
        ("And the {place}?",),
        0.7,
    ),
    Family(
        "planets",
        PLANETS,
        ("Which place from the sun has {planet}?", "How far from the sun is {planet}?", "Which number is {planet}?"),
        ("Tell me which planet from the sun {planet} is.",),
        ("{planet} is the {place} planet from the sun.",),
        "{place}",
        ("And {planet}?",),
        0.4,
    ),
    Family(
        "planets",
        ({"list": ORDER},),
        ("Name the planets.", "What are the planets?", "List the planets.", "Which planets go around the sun?"),
        ("Tell me the planets.",),
        ("The planets are {list}.",),
        weight=0.25,
    ),
    Family(
        "weather",
        WEATHER,
        (
            "What should I wear in {what}?",
            "What should I wear when there is {what}?",
            "What clothes are good for {what}?",
            "There is {what} today. What should I wear?",
            "What do I put on when there is {what}?",
            "How should I dress for {what}?",
        ),
        ("Tell me what to wear in {what}.",),
        ("When there is {what}, wear {clothes}. It is a good idea to {doing}.",),
        followups=("And in {what}?",),
        weight=0.8,
    ),
    Family(
        "weather",
        CAUSES,
        (
            "What is {what}?",
            "Tell me what {what} is.",
            "Explain {what}.",
            "What is {what}, really?",
            "Say what {what} is.",
        ),
        ("Please explain what {what} is.",),
        ("{What} is {is_}.",),
        followups=("And {what}?",),
        weight=0.8,
    ),
    Family(
        "weather",
        CAUSES,
        (
            "Why is there {what}?",
            "How does {what} form?",
            "What makes {what}?",
            "Why do we get {what}?",
            "What causes {what}?",
        ),
        ("Where does {what} come from?",),
        ("We get {what} when {because}.",),
        followups=("And {what}?",),
        weight=0.8,
    ),
)
