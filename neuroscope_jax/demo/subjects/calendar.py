"""Days, months and seasons."""

from neuroscope_jax.demo.subjects.family import Family, table

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS = tuple(
    {
        "day": day,
        "next": DAY_NAMES[(i + 1) % 7],
        "previous": DAY_NAMES[i - 1],
        "part": "the weekend" if i > 4 else "the working week",
    }
    for i, day in enumerate(DAY_NAMES)
)
MONTH_TABLE = table(
    "month days place season",
    """
    January, 31, first, winter
    February, 28, second, winter
    March, 31, third, spring
    April, 30, fourth, spring
    May, 31, fifth, spring
    June, 30, sixth, summer
    July, 31, seventh, summer
    August, 31, eighth, summer
    September, 30, ninth, autumn
    October, 31, tenth, autumn
    November, 30, eleventh, autumn
    December, 31, twelfth, winter
    """,
)
MONTHS = tuple(
    {**row, "next": MONTH_TABLE[(i + 1) % 12]["month"], "previous": MONTH_TABLE[i - 1]["month"]}
    for i, row in enumerate(MONTH_TABLE)
)
LENGTHS = table(
    "unit amount smaller",
    """
    week, seven, days
    year, twelve, months
    day, twenty-four, hours
    hour, sixty, minutes
    minute, sixty, seconds
    season, three, months
    weekend, two, days
    century, one hundred, years
    decade, ten, years
    """,
)

FAMILIES = (
    Family(
        "days",
        DAYS,
        (
            "What day comes after {day}?",
            "Which day comes after {day}?",
            "Which day follows {day}?",
            "What is the day after {day}?",
            "If today is {day}, what day is tomorrow?",
            "Today is {day}. What day is tomorrow?",
            "What comes after {day}?",
        ),
        ("What day follows {day}?", "Tell me the day after {day}."),
        ("The day after {day} is {next}.", "After {day} comes {next}."),
        "{next}",
        ("And after {day}?",),
        0.8,
    ),
    Family(
        "days",
        DAYS,
        (
            "What day comes before {day}?",
            "Which day comes before {day}?",
            "What is the day before {day}?",
            "If today is {day}, what day was yesterday?",
            "Today is {day}. What day was yesterday?",
            "Which day is just before {day}?",
        ),
        ("Tell me the day before {day}.",),
        ("The day before {day} is {previous}.", "Before {day} comes {previous}."),
        "{previous}",
        ("And before {day}?",),
        0.8,
    ),
    Family(
        "days",
        DAYS,
        (
            "Is {day} part of the weekend?",
            "Is {day} a working day?",
            "Do people work on {day}?",
            "Is {day} in the weekend?",
        ),
        ("Does {day} belong to the weekend?",),
        ("{day} is part of {part}.",),
        weight=0.4,
    ),
    Family(
        "months",
        MONTHS,
        (
            "What month comes after {month}?",
            "Which month comes after {month}?",
            "Which month follows {month}?",
            "What is the month after {month}?",
            "If this month is {month}, what is next month?",
            "What comes after {month}?",
        ),
        ("What month follows {month}?", "Tell me the month after {month}."),
        ("The month after {month} is {next}.", "After {month} comes {next}."),
        "{next}",
        ("And after {month}?",),
        0.8,
    ),
    Family(
        "months",
        MONTHS,
        (
            "What month comes before {month}?",
            "Which month comes before {month}?",
            "What is the month before {month}?",
            "Which month is just before {month}?",
            "What comes before {month}?",
        ),
        ("Tell me the month before {month}.",),
        ("The month before {month} is {previous}.", "Before {month} comes {previous}."),
        "{previous}",
        ("And before {month}?",),
        0.8,
    ),
    Family(
        "months",
        MONTHS,
        (
            "How many days does {month} have?",
            "How many days are in {month}?",
            "How many days has {month}?",
            "How long is {month}?",
            "What is the number of days in {month}?",
        ),
        ("Tell me how many days {month} has.",),
        ("{month} has {days} days.",),
        "{days}",
        ("And {month}?",),
        0.8,
    ),
    Family(
        "seasons",
        MONTHS,
        (
            "In which season is {month}?",
            "What season is {month} in?",
            "Which season is {month}?",
            "Is {month} in summer or in winter?",
            "What is the season in {month}?",
            "Which season does {month} belong to?",
        ),
        ("Tell me the season of {month}.",),
        ("{month} is in {season}.",),
        "{season}",
        ("And {month}?",),
        0.7,
    ),
    Family(
        "months",
        MONTHS,
        (
            "Which month of the year is {month}?",
            "What number is {month} in the year?",
            "What place has {month} in the year?",
            "Which number is the month of {month}?",
        ),
        ("Tell me which month of the year {month} is.",),
        ("{month} is the {place} month of the year.",),
        "{place}",
        ("And {month}?",),
        0.5,
    ),
    Family(
        "months",
        MONTHS,
        (
            "What is the {place} month of the year?",
            "Which month is the {place} of the year?",
            "Name the {place} month.",
        ),
        ("Tell me the {place} month of the year.",),
        ("The {place} month of the year is {month}.",),
        "{month}",
        ("And the {place}?",),
        0.5,
    ),
    Family(
        "time",
        LENGTHS,
        (
            "How many {smaller} are in a {unit}?",
            "How many {smaller} does a {unit} have?",
            "How many {smaller} are there in a {unit}?",
            "How long is a {unit}?",
            "A {unit} has how many {smaller}?",
        ),
        ("Tell me how many {smaller} a {unit} has.",),
        ("There are {amount} {smaller} in a {unit}.", "A {unit} has {amount} {smaller}."),
        "{amount}",
        ("And a {unit}?",),
        0.7,
    ),
    Family(
        "days",
        ({"list": ", ".join(DAY_NAMES[:6]) + " and Sunday"},),
        (
            "Name the days of the week.",
            "What are the days of the week?",
            "List the days of the week.",
            "Which days are there?",
        ),
        ("Tell me the days of the week.",),
        ("The days of the week are {list}.",),
        weight=0.25,
    ),
    Family(
        "months",
        ({"list": ", ".join(row["month"] for row in MONTH_TABLE[:11]) + " and December"},),
        (
            "Name the months of the year.",
            "What are the months of the year?",
            "List the months.",
            "Which months are there?",
        ),
        ("Tell me the months of the year.",),
        ("The months of the year are {list}.",),
        weight=0.25,
    ),
    Family(
        "seasons",
        ({"list": "spring, summer, autumn and winter"},),
        (
            "Name the seasons.",
            "What are the four seasons?",
            "List the seasons of the year.",
            "Which seasons are there?",
        ),
        ("Tell me the seasons.",),
        ("The four seasons are {list}.",),
        weight=0.2,
    ),
)
