"""People: the body and its senses, jobs, shapes and things they use."""

from neuroscope_jax.demo.subjects.family import Family, article, table

BODY_TABLE = table(
    "part use where",
    """
    eyes, see, in the face
    ears, hear, on the sides of the head
    nose, smell, in the middle of the face
    tongue, taste, in the mouth
    teeth, bite and chew, in the mouth
    hands, hold things, at the ends of the arms
    legs, walk and run, below the hips
    heart, pump blood, in the chest
    lungs, breathe, in the chest
    brain, think, in the head
    stomach, digest food, in the belly
    skin, feel, all over the body
    feet, stand, at the ends of the legs
    fingers, pick things up, on the hands
    knees, bend the legs, in the middle of the legs
    """,
)
BODY = tuple(
    {**row, "be": "are" if row["part"].endswith("s") or row["part"] in ("teeth", "feet") else "is"}
    for row in BODY_TABLE
)
JOB_TABLE = table(
    "job does tool place",
    """
    baker, bakes bread, an oven, a bakery
    pilot, flies planes, a plane, an airport
    doctor, heals sick people, medicine, a hospital
    teacher, teaches children, a blackboard, a school
    farmer, grows food, a tractor, a farm
    cook, cooks meals, a pan, a kitchen
    painter, paints pictures, a brush, a studio
    singer, sings songs, a microphone, a stage
    gardener, looks after plants, a spade, a garden
    tailor, makes clothes, a needle, a workshop
    carpenter, makes things of wood, a hammer, a workshop
    fisherman, catches fish, a net, a boat
    barber, cuts hair, scissors, a barber shop
    dentist, looks after teeth, a small mirror, a clinic
    firefighter, puts out fires, a hose, a fire station
    librarian, looks after books, a catalogue, a library
    writer, writes books, a pen, a quiet room
    driver, drives a bus, a bus, the road
    sailor, sails ships, a compass, a ship
    astronomer, studies the stars, a telescope, an observatory
    """,
)
JOBS = tuple({**row, "a_job": article(row["job"])} for row in JOB_TABLE)
SHAPE_TABLE = table(
    "shape sides thing",
    """
    triangle, three, a slice of pizza
    square, four, a chess board
    rectangle, four, a door
    pentagon, five, a simple house
    hexagon, six, a cell of a honeycomb
    octagon, eight, a stop sign
    circle, no, a coin
    oval, no, an egg
    """,
)
SHAPES = tuple({**row, "a_shape": article(row["shape"])} for row in SHAPE_TABLE)

FAMILIES = (
    Family(
        "body",
        BODY,
        (
            "What do we use our {part} for?",
            "What {be} the {part} for?",
            "What do people do with their {part}?",
            "Why do we have {part}?",
            "What can I do with my {part}?",
            "What is the use of our {part}?",
        ),
        ("Tell me what we use our {part} for.",),
        ("We use our {part} to {use}.",),
        "to {use}",
        ("And our {part}?",),
    ),
    Family(
        "body",
        BODY,
        (
            "Which part of the body do we use to {use}?",
            "With which part of the body do we {use}?",
            "What do we {use} with?",
            "Which part of us helps us {use}?",
        ),
        ("Which body part do we use to {use}?",),
        ("We {use} with our {part}.",),
        "{part}",
        ("And to {use}?",),
    ),
    Family(
        "body",
        BODY,
        ("Where {be} the {part}?", "Where in the body {be} the {part}?", "Where {be} my {part}?"),
        ("Tell me where my {part} {be}.",),
        ("Your {part} {be} {where}.",),
        "{where}",
        ("And the {part}?",),
        0.6,
    ),
    Family(
        "jobs",
        JOBS,
        (
            "What does {a_job} do?",
            "What is the work of {a_job}?",
            "What does the {job} do all day?",
            "What is {a_job}?",
            "Tell me what {a_job} does.",
            "What is the job of {a_job}?",
        ),
        ("Can you explain what {a_job} does?",),
        ("{A_job} {does}.", "{A_job} is a person who {does}."),
        followups=("And {a_job}?", "What about {a_job}?"),
    ),
    Family(
        "jobs",
        JOBS,
        (
            "Who {does}?",
            "Which person {does}?",
            "What do you call a person who {does}?",
            "What do we call somebody who {does}?",
        ),
        ("What is the name for a person who {does}?",),
        ("{A_job} {does}.", "A person who {does} is called {a_job}."),
        "{job}",
        ("And who {does}?",),
    ),
    Family(
        "jobs",
        JOBS,
        (
            "What does {a_job} use?",
            "What tool does {a_job} need?",
            "Which tool does {a_job} use?",
            "What does {a_job} work with?",
        ),
        ("Tell me which tool {a_job} uses.",),
        ("{A_job} uses {tool}.",),
        "{tool}",
        ("And {a_job}?",),
        0.7,
    ),
    Family(
        "jobs",
        JOBS,
        ("Where does {a_job} work?", "Where can I find {a_job}?", "What is the place of work of {a_job}?"),
        ("Tell me where {a_job} works.",),
        ("The place where {a_job} works is {place}.",),
        "{place}",
        ("And {a_job}?",),
        0.7,
    ),
    Family(
        "shapes",
        SHAPES,
        (
            "How many sides does {a_shape} have?",
            "How many sides has {a_shape}?",
            "How many corners does {a_shape} have?",
            "{A_shape} has how many sides?",
            "What number of sides does {a_shape} have?",
            "Count the sides of {a_shape}.",
        ),
        ("Tell me how many sides {a_shape} has.",),
        ("{A_shape} has {sides} sides.",),
        "{sides}",
        ("And {a_shape}?",),
        0.7,
    ),
    Family(
        "shapes",
        SHAPES,
        (
            "What has the shape of {a_shape}?",
            "Name a thing that looks like {a_shape}.",
            "What looks like {a_shape}?",
            "Give me an example of {a_shape}.",
        ),
        ("Which thing looks like {a_shape}?",),
        ("{Thing} has the shape of {a_shape}.",),
        followups=("And {a_shape}?",),
        weight=0.6,
    ),
)
