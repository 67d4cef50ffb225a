"""Texts of this machine: one file, or a folder with all that is below it."""

import functools
import hashlib
import logging
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from neuroscope_jax.corpus.readers import ENDINGS, Damaged, reader_of
from neuroscope_jax.corpus.skipped import Skipped
from neuroscope_jax.corpus.source import Document, Source, TextDigest, failure
from neuroscope_jax.errors import UserError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sizes:
    """What one pass over a source finds."""

    documents: int
    sha256: str  # of all texts in order


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long
        return False


class Folder(Source):
    """The documents of a file or folder, in the order of the files' names; read anew each time, never kept.

    Raises UserError where nothing is there, and later where nothing of it can be read.
    """

    def __init__(self, path: Path, text_field: str, name: str) -> None:
        self.path, self.text_field, self.name = path, text_field, name
        if not _exists(path):
            raise failure(name, _absent(path), "check the path")

    @functools.cached_property
    def sizes(self) -> Sizes:
        """Of all documents; the first to ask reads everything once, and what is skipped is logged then."""
        skipped, digest, documents, characters = Skipped(self.name), TextDigest(), 0, 0
        for document in self.read(skipped):
            digest.add(document.text)
            documents += 1
            characters += len(document.text)
        skipped.log_rest()
        if not documents:
            raise self._without_text(skipped)
        logger.info("%s: %d documents, %d characters", self.name, documents, characters)
        return Sizes(documents, digest.hexdigest())

    @property
    def documents(self) -> int:
        """How many there are."""
        return self.sizes.documents

    def read(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Every document, in order. What is skipped is logged where `skipped` is given."""
        skipped = skipped or Skipped(self.name, quiet=True)
        for path in self._files(skipped):
            yield from self._documents(path, skipped)

    def choose(self, many: int, seed: int) -> Iterator[Document]:
        """A random choice without repetition, in the order of the files."""
        if many >= self.documents:
            yield from self.read()
            return
        chosen = set(random.Random(seed).sample(range(self.documents), many))
        for number, document in enumerate(self.read()):
            if number in chosen:
                yield document

    @property
    def version(self) -> str:
        """A digest of the files' names, sizes and times: another one where a file was changed."""
        digest = hashlib.sha256()
        for path in self._files(Skipped(self.name, quiet=True)):
            told = path.stat()
            digest.update(
                f"{self._relative(path)}\0{told.st_size}\0{told.st_mtime_ns}\n".encode(errors="surrogateescape")
            )
        return digest.hexdigest()[:16]

    def _without_text(self, skipped: Skipped) -> UserError:
        found = f"all of it was skipped: {skipped.summary()}; first {skipped.first}" if skipped.first else "it is empty"
        remedy = f"give a file or folder of {ENDINGS} with at least one text"
        return failure(self.name, f"no text was found in it; {found}", remedy)

    def _documents(self, path: Path, skipped: Skipped) -> Iterator[Document]:
        """Of one file. In a folder a damaged file ends there; a file given by itself must be whole."""
        source = self._relative(path)
        reader = reader_of(path)
        assert reader is not None  # `_files` yields no other
        count = 0

        def note(place: str, reason: str, detail: str) -> None:
            skipped.add(f"{source} {place}".rstrip(), reason, detail)

        try:
            for row, text in reader(path, self.text_field, note):
                count += 1
                yield Document(text, source, row)
        except Damaged as error:
            if path == self.path:
                raise failure(self.name, str(error), "give a whole file, or name the field with text_field") from error
            kept = f"; the {count:,} documents before are kept" if count else ""
            skipped.add(source, error.reason, error.detail + kept)

    def _files(self, skipped: Skipped) -> Iterator[Path]:
        """The files that can be read, in an order that no file system changes. Hidden ones are left out in silence."""
        if not self.path.is_dir():
            if not self.path.is_file() or reader_of(self.path) is None:
                raise failure(self.name, "it is no file of a kind that is read", f"give one of {ENDINGS}, or a folder")
            yield self.path
            return
        walk = os.walk(self.path, onerror=lambda error: self._unreadable_folder(error, skipped))
        for folder, folders, files in walk:
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in [name for name in folders if Path(folder, name).is_symlink()]:
                skipped.add(self._relative(Path(folder, name)), "link to a folder")
            for path in (Path(folder, name) for name in sorted(files) if not name.startswith(".")):
                if reader_of(path) is None:
                    skipped.add(self._relative(path), "an ending that is not read")
                elif not _is_file(path):
                    skipped.add(self._relative(path), "no regular file")
                else:
                    yield path

    def _unreadable_folder(self, error: OSError, skipped: Skipped) -> None:
        skipped.add(self._relative(Path(str(error.filename))), "unreadable", error.strerror or "")

    def _relative(self, path: Path) -> str:
        """A file's name from the folder given on; bytes that are no UTF-8 are spelt out."""
        name = path.name if path == self.path else path.relative_to(self.path).as_posix()
        return os.fsencode(name).decode(errors="backslashreplace")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that may be listed but not entered
        return False


def _absent(path: Path) -> str:
    near = sorted(entry.name for entry in path.parent.iterdir())[:5] if path.parent.is_dir() else []
    seen = f"beside it there are {', '.join(near)}" if near else f"{path.parent} does not exist or is empty"
    return f"there is no {path}; {seen}"
