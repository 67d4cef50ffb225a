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
        ("'", "'"),
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
