"""Types of command-line options."""

import argparse
from collections.abc import Callable


def some_of(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """An argparse type: a comma-separated list of some of `names`."""

    def parse(text: str) -> list[str]:
        if unknown := [name for name in text.split(",") if name not in names]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: expected some of {','.join(names)}")
        return text.split(",")

    return parse


def at_least(least: int) -> Callable[[str], int]:
    """An argparse type: a whole number not below `least`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, {least} or more")
        return int(text)

    return parse


def above_zero(text: str) -> float:
    """An argparse type: a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return number
