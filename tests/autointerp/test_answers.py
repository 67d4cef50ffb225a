"""Which labels are shown."""

import pytest

from neuroscope_jax.autointerp.answers import Description, validated


def answered(label: str, confidence: str = "high", pattern: str = "They greet.") -> Description | str:
    return validated({"pattern": pattern, "label": label, "confidence": confidence})


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("greeting or salutation", "greeting or salutation"),
        ("  Greeting  or\tsalutation. ", "Greeting or salutation"),
        ('"greeting."', "greeting"),
        ("“greeting”", "greeting"),
        ("`x = 1`.", "x = 1"),
        ('"hello" and "goodbye"', '"hello" and "goodbye"'),
        ("courts of the U.S.", "courts of the U.S."),
        ("ellipsis ...", "ellipsis ..."),
        ("C++ stream operators << and >>", "C++ stream operators << and >>"),
        ("feature films and cinema", "feature films and cinema"),
        ("let me know", "let me know"),
        ("next: a city after its country", "next: a city after its country"),
        (" ".join(["word"] * 14), " ".join(["word"] * 14)),
        ("family emoji 👩‍❤️‍👨 in chats", "family emoji 👩‍❤️‍👨 in chats"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        ("می‌خواهم in Persian", "می‌خواهم in Persian"),
        ("क्षत्रिय and नहीं", "क्षत्रिय and नहीं"),
        ("Tiếng Việt, decomposed: Việt", "Tiếng Việt, decomposed: Việt"),
        ("9/11", "9/11"),
        ("the year 2024", "the year 2024"),
        ("[[wiki links]] and [citation needed]", "[[wiki links]] and [citation needed]"),
        ("next: {", "next: {"),
        ("feature 12 of a list of features", "feature 12 of a list of features"),
        ("x" * 100, "x" * 100),
    ],
)
def test_good_labels_are_kept_and_trimmed(label: str, shown: str) -> None:
    assert answered(label) == Description(shown, "high", "They greet.")


@pytest.mark.parametrize(
    ("label", "fault"),
    [
        ("", "is empty"),
        (' "" . ', "is empty"),
        (" ".join(["word"] * 15), "has 15 words, expected fewer than 15"),
        ("greeting\nor salutation", "is not on one line"),
        ("greeting\u2028x", "is not on one line"),
        ("greeting \x1b[31m", "characters that cannot be shown"),
        ("words like << hello>>", "holds the marks"),
        ("words like ⟪hello⟫", "holds the marks"),
        ("This feature activates on greetings", "speaks of the feature"),
        ("the neuron fires at greetings", "speaks of the feature"),
        ("Activates on greetings", "speaks of the feature"),
        ("A latent that detects greetings", "speaks of the feature"),
        ("thoughtThe user wants me to explain", "is reasoning"),
        ("Let me analyze the examples", "is reasoning"),
        ("Okay, greetings", "is reasoning"),
        ("Looking at the examples, greetings", "is reasoning"),
        ("Unclear.", "says nothing"),
        ("no clear pattern", "says nothing"),
        ("feature_12", "says nothing"),
        ("Feature 12", "says nothing"),
        ("neuron #7", "says nothing"),
        ("-", "holds no word"),
        ("'", "holds no word"),
        ("…", "holds no word"),
        ("123", "holds no word"),
        ("1,234.5", "holds no word"),
        ("12%", "holds no word"),
        ('{"label": "greeting"}', "is JSON"),
        ('{ "label": "gree', "is JSON"),
        ('["greeting", "salutation"]', "is JSON"),
        ('"label": "greeting"', "is JSON"),
        ("x" * 101, "has 101 characters, expected at most 100"),
        ("\u3164", "characters that cannot be shown"),
        ("greeting\u2800\u2800", "characters that cannot be shown"),
        ("greet\u200bing", "characters that cannot be shown"),
        ("greet\u200d\u200ding", "characters that cannot be shown"),
        ("greeting\u200d", "characters that cannot be shown"),
        ("greet\ufe0f\ufe0fing", "characters that cannot be shown"),
        ("greet\U000e0101ing", "characters that cannot be shown"),
        ("gre\u202eeting", "characters that cannot be shown"),
        ("gre" + "\u0301" * 5 + "eting", "characters that cannot be shown"),
    ],
)
def test_bad_labels_are_refused_in_words(label: str, fault: str) -> None:
    found = answered(label)
    assert isinstance(found, str)
    assert found.startswith(f"label {fault}") or fault in found


def test_confidence_is_one_of_three() -> None:
    assert answered("greeting", "certain") == "confidence is 'certain', expected one of high, medium, low"


def test_the_pattern_is_put_on_one_line() -> None:
    assert answered("greeting", "low", " They\n greet \x1b. ") == Description("greeting", "low", "They greet [U+001B].")


def test_a_long_pattern_is_cut() -> None:
    found = answered("greeting", pattern="x" * 401)
    assert isinstance(found, Description)
    assert found.pattern == "x" * 399 + "…"
    assert answered("greeting", pattern="x" * 400) == Description("greeting", "high", "x" * 400)
