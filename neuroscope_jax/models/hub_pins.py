"""Which commit of a repository is meant on this machine, where `pull --revision` has chosen one.

A pin holds for every command and for all files of the repository, until `pull --revision main` takes it away.
"""

from pathlib import Path

import msgspec

from neuroscope_jax.config import cache_folder
from neuroscope_jax.files import read_json, set_aside

FREE = "main"  # the revision that is followed wherever it goes


class Pin(msgspec.Struct, frozen=True):
    """What was asked for, and the commit it was then."""

    revision: str
    commit: str


class _Pins(msgspec.Struct):
    repositories: dict[str, Pin]


def pin_of(repo: str) -> Pin | None:
    """The pin of a repository. Raises UserError where the file of pins cannot be read."""
    return _all().get(repo)


def commit_of(repo: str) -> str | None:
    """The commit a repository is pinned to."""
    pin = pin_of(repo)
    return pin.commit if pin else None


def record(repo: str, revision: str, commit: str) -> None:
    """Pin a repository, or take its pin away where `revision` is "main". Raises UserError for an unwritable cache."""
    pins = _all()
    before = dict(pins)
    pins.pop(repo, None)
    if revision != FREE:
        pins[repo] = Pin(revision, commit)
    if pins != before:
        with set_aside(_file()) as (aside,):
            aside.write_bytes(msgspec.json.format(msgspec.json.encode(_Pins(pins))) + b"\n")


def _all() -> dict[str, Pin]:
    file = _file()
    return read_json(file, _Pins).repositories if file.exists() else {}


def _file() -> Path:
    return cache_folder() / "revisions.json"
