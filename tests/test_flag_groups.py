"""Commands whose flags are declared in part by a dataclass they share."""

import dataclasses
import inspect

import fire
import pytest

from neuroscope_jax import flags
from neuroscope_jax.flag_groups import expanded


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Where.

    Args:
        folder: of the files
        depth: how far down
    """

    folder: str | None = None
    depth: int = 2


@flags.command(folder="here")
@expanded
def look(*, place: Place, what: str, loud: bool = False) -> tuple[Place, str, bool]:
    """Look for something.

    Args:
        what: to look for
        loud: say so
    """
    return place, what, loud


def called(*argv: str) -> object:
    return fire.Fire({"look": look}, command=["look", *flags.checked(look, list(argv))], serialize=lambda _: "")


def test_fields_reach_the_dataclass_and_flags_the_function() -> None:
    assert called("--what", "1", "--depth", "5", "--loud") == (Place(depth=5), "1", True)
    assert called("--folder=7", "--what=x") == (Place(folder="7"), "x", False)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--depth", "x", "--what", "y"], "--depth 'x': expected a whole number"),
        (["--dept", "1"], "unknown flag --dept; did you mean --depth"),
        (["--place", "x"], "unknown flag --place"),
        (["--depth", "1"], "--what is missing; see --help"),
    ],
)
def test_mistakes_are_told_as_for_any_flag(argv: list[str], said: str) -> None:
    with pytest.raises(flags.UsageError, match=said):
        called(*argv)


def test_help_shows_all_of_them_with_their_defaults() -> None:
    assert list(inspect.signature(look).parameters) == ["folder", "depth", "what", "loud"]
    lines = flags.help_text("program", ["look"], look).splitlines()
    assert lines[2] == "Look for something."
    assert lines[4:] == [
        "  --folder TEXT",
        "        of the files [here]",
        "  --depth N",
        "        how far down [2]",
        "  --what TEXT",
        "        to look for",
        "  --loud",
        "        say so",
    ]
