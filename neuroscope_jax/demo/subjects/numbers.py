"""Small numbers: sums, differences, products, neighbours, comparisons, counting, number words."""

from random import Random

from neuroscope_jax.demo.subjects.family import Family, Row, Writer

NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()

LIMITS = (20, 10, 10)  # small numbers come up three times as often
SUMS = tuple(
    {"a": str(a), "b": str(b), "c": str(a + b)} for limit in LIMITS for a in range(limit + 1) for b in range(limit + 1)
)
DIFFERENCES = tuple(
    {"a": str(a), "b": str(b), "c": str(a - b)} for limit in LIMITS for a in range(limit + 1) for b in range(a + 1)
)
PRODUCTS = tuple({"a": str(a), "b": str(b), "c": str(a * b)} for a in range(11) for b in range(11))
NEIGHBOURS = tuple({"n": str(n), "before": str(n - 1), "after": str(n + 1)} for n in range(1, 100))
LARGER = tuple(
    {"a": str(a), "b": str(b), "large": str(max(a, b)), "small": str(min(a, b))}
    for a in range(0, 60, 3)
    for b in range(1, 60, 4)
    if a != b
)
NAMED = tuple({"n": str(n), "name": name} for n, name in enumerate(NAMES))


def count(rng: Random) -> tuple[Row, str]:
    """A request to count, and the numbers one after another."""
    first = rng.choice((1, 1, 1, 2, 3, 5, 10))
    last = first + rng.randint(3, 11)
    return {"first": str(first), "last": str(last)}, ", ".join(str(n) for n in range(first, last + 1)) + "."


FAMILIES = (
    Family(
        "sums",
        SUMS,
        (
            "What is {a} plus {b}?",
            "What is {a} + {b}?",
            "{a} + {b} = ?",
            "{a} + {b}",
            "How much is {a} plus {b}?",
            "Add {a} and {b}.",
            "What do you get when you add {a} and {b}?",
            "Can you add {a} and {b}?",
            "What is the sum of {a} and {b}?",
            "What does {a} + {b} make?",
            "How much is {a} + {b}?",
            "If I have {a} apples and get {b} more, how many do I have?",
        ),
        ("What do {a} and {b} add up to?", "Please work out {a} + {b}.", "Tell me what {a} plus {b} is."),
        ("{a} plus {b} is {c}.", "{a} + {b} = {c}."),
        "{c}",
        ("And {a} + {b}?", "And {a} plus {b}?", "What about {a} + {b}?"),
        10.0,
    ),
    Family(
        "differences",
        DIFFERENCES,
        (
            "What is {a} minus {b}?",
            "What is {a} - {b}?",
            "{a} - {b} = ?",
            "{a} - {b}",
            "How much is {a} minus {b}?",
            "Take {b} from {a}.",
            "Subtract {b} from {a}.",
            "What is left when you take {b} from {a}?",
            "How much is {a} - {b}?",
            "If I have {a} apples and eat {b}, how many are left?",
        ),
        ("Please work out {a} - {b}.", "Tell me what {a} minus {b} is."),
        ("{a} minus {b} is {c}.", "{a} - {b} = {c}."),
        "{c}",
        ("And {a} - {b}?", "And {a} minus {b}?"),
        5.0,
    ),
    Family(
        "products",
        PRODUCTS,
        (
            "What is {a} times {b}?",
            "What is {a} x {b}?",
            "What is {a} * {b}?",
            "{a} * {b}",
            "{a} times {b}",
            "How much is {a} times {b}?",
            "Multiply {a} by {b}.",
            "What do you get when you multiply {a} by {b}?",
            "What is the product of {a} and {b}?",
        ),
        ("Please work out {a} * {b}.", "Tell me what {a} times {b} is."),
        ("{a} times {b} is {c}.", "{a} * {b} = {c}."),
        "{c}",
        ("And {a} times {b}?",),
        2.5,
    ),
    Family(
        "counting",
        NEIGHBOURS,
        (
            "What number comes after {n}?",
            "Which number comes after {n}?",
            "What comes after {n}?",
            "What is the next number after {n}?",
            "Which number follows {n}?",
            "I am counting. What comes after {n}?",
        ),
        ("Which number is next after {n}?",),
        ("The number after {n} is {after}.", "After {n} comes {after}."),
        "{after}",
        ("And after {n}?",),
    ),
    Family(
        "counting",
        NEIGHBOURS,
        (
            "What number comes before {n}?",
            "Which number comes before {n}?",
            "What comes before {n}?",
            "Which number is just before {n}?",
            "What is the number before {n}?",
        ),
        ("Tell me the number before {n}.",),
        ("The number before {n} is {before}.", "Before {n} comes {before}."),
        "{before}",
        ("And before {n}?",),
    ),
    Family(
        "comparing",
        LARGER,
        (
            "Which is larger, {a} or {b}?",
            "Which number is bigger, {a} or {b}?",
            "What is larger: {a} or {b}?",
            "Is {a} or {b} the larger number?",
            "Which is more, {a} or {b}?",
        ),
        ("Which number is larger, {a} or {b}?",),
        ("{large} is larger than {small}.",),
        "{large}",
        ("And {a} or {b}?",),
    ),
    Family(
        "counting",
        NAMED,
        (
            "How do you write {n} in words?",
            "How do you spell {n}?",
            "Write {n} as a word.",
            "What is the word for {n}?",
            "Write the number {n} in letters.",
        ),
        ("Please write {n} in words.",),
        ("The number {n} is written {name}.",),
        "{name}",
        ("And {n}?",),
        0.6,
    ),
    Writer(
        "counting",
        count,
        (
            "Count from {first} to {last}.",
            "Please count from {first} to {last}.",
            "Can you count from {first} to {last}?",
            "Count up from {first} to {last}.",
            "List the numbers from {first} to {last}.",
        ),
        ("Can you list the numbers from {first} to {last}?",),
        1.2,
    ),
)
