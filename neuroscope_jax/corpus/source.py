"""What a source of texts is to the rest of the package: a name, so many documents, and a seeded choice among them."""

import abc
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from neuroscope_jax.errors import UserError


@dataclass(frozen=True)
class Document:
    """One text of a corpus and where it stands, so that it can be found again."""

    text: str
    source: str  # file relative to the folder given, or dataset, configuration and split
    row: int  # line, row, or row of the article's heading within the source, counted from 0


class Source(abc.ABC):
    """A file, a folder or a dataset."""

    name: str  # for people, and each document's source where it has no files

    @property
    @abc.abstractmethod
    def version(self) -> str | None:
        """What changes with its content: a dataset's commit if known, a digest of a folder's file names and times."""

    @property
    @abc.abstractmethod
    def documents(self) -> int | None:
        """How many; None where it is too large to be counted."""

    @abc.abstractmethod
    def choose(self, many: int, seed: int) -> Iterator[Document]:
        """`many` of its documents, spread over the whole; the same for the same seed. Fewer where it has fewer."""


class TextDigest:
    """SHA-256 over texts in order: of their own SHA-256 digests, so that it matters where one text ends."""

    def __init__(self) -> None:
        self._all = hashlib.sha256()

    def add(self, text: str) -> str:
        """One more text; returns the hexadecimal digest of it alone."""
        own = hashlib.sha256(text.encode())
        self._all.update(own.digest())
        return own.hexdigest()

    def hexdigest(self) -> str:
        """Of all texts so far."""
        return self._all.hexdigest()


def failure(name: str, why: str, remedy: str) -> UserError:
    """The three lines: what, why, what to do."""
    return UserError(f"Cannot read the corpus {name}.\nWhy: {why}.\nDo: {remedy}.")
