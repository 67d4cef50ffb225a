"""Storing a corpus: written aside, put in its place in one step when it is whole."""

import contextlib
import datetime
import gzip
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from neuroscope_jax import __version__
from neuroscope_jax.config import CorpusSource
from neuroscope_jax.corpus.manifest import Manifest, Origins, Part
from neuroscope_jax.corpus.mix import SEED, Mix, name_of
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.source import Document, TextDigest, failure
from neuroscope_jax.corpus.store import MANIFEST, TEXTS, Stored, folder_for, opened
from neuroscope_jax.errors import UserError

UNFINISHED = ".building-"
ABANDONED = 3600.0  # seconds since the last write, after which an unfinished corpus is taken to be a killed run's


def build(sources: Sequence[CorpusSource], many: int) -> Stored:
    """Fetch `many` documents, or all there are, and store them; what is stored already is left as it is.

    Raises UserError where the sources cannot be read, hold no text, or the disk is full.
    """
    folder, name = folder_for(sources, many), name_of(sources)
    mix = Mix(sources, many)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        with _aside(folder.parent) as unfinished:
            tally = _write_texts(unfinished / TEXTS, mix)
            if not tally.origins.row:
                raise failure(
                    name,
                    "its sources hold no text",
                    "choose others in the config",
                )
            _write_manifest(unfinished, _manifest(name, sources, mix, many, tally, _sha256(unfinished / TEXTS)))
            _put_in_place(unfinished, folder)
    except OSError as error:
        remedy = "make room, or set NEUROSCOPE_CACHE to a folder on another disk; earlier corpora are as they were"
        raise failure(name, f"it cannot be stored in {folder.parent}: {error.strerror or error}", remedy) from error
    return opened(folder)


class _Tally:
    """What is known of the documents written so far."""

    def __init__(self, sources: int) -> None:
        self.origins = Origins([], [], [], [])
        self.digest = TextDigest()
        self.characters = 0
        self.given = [0] * sources
        self._names: dict[str, int] = {}

    def add(self, source: int, document: Document) -> None:
        number = self._names.setdefault(document.source, len(self._names))
        if number == len(self.origins.names):
            self.origins.names.append(document.source)
        self.origins.source.append(number)
        self.origins.row.append(document.row)
        self.origins.sha256.append(self.digest.add(document.text)[:16])
        self.characters += len(document.text)
        self.given[source] += 1


def _write_texts(path: Path, mix: Mix) -> _Tally:
    tally = _Tally(len(mix.shares))
    # Without name and time in its header the same texts are the same file.
    with path.open("wb") as raw, progress("corpus", sum(mix.shares), "documents") as bar:
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
            for source, document in mix:
                file.write(msgspec.json.encode({"text": document.text}) + b"\n")
                tally.add(source, document)
                bar.update()
        _flush(raw)
    return tally


def _manifest(
    name: str, sources: Sequence[CorpusSource], mix: Mix, many: int, tally: _Tally, file_sha256: str
) -> Manifest:
    parts = [
        Part(asked, source.name, source.version, documents, source.documents)
        for asked, source, documents in zip(sources, mix.sources, tally.given, strict=True)
    ]
    return Manifest(
        name=name,
        parts=parts,
        seed=SEED,
        asked=many,
        documents=len(tally.origins.row),
        whole=mix.whole,
        characters=tally.characters,
        sha256=tally.digest.hexdigest(),
        file_sha256=file_sha256,
        made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        version=__version__,
        origins=tally.origins,
    )


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    with (folder / MANIFEST).open("wb") as file:
        file.write(msgspec.json.encode(manifest))
        _flush(file)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _aside(parent: Path) -> Iterator[Path]:
    """A folder that is gone afterwards unless it was moved."""
    folder = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(unfinished: Path, folder: Path) -> None:
    """Under its name, unless a whole one stands there: another process was quicker."""
    unfinished.chmod(0o755)  # it was made for the user alone
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        if _is_whole(folder):
            return
        shutil.rmtree(folder)
        unfinished.rename(folder)


def _is_whole(folder: Path) -> bool:
    try:
        opened(folder).check()
    except UserError:
        return False
    return True


def _sweep(parent: Path) -> None:
    """Remove what killed runs left."""
    for folder in parent.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(FileNotFoundError):  # its own process has just moved or removed it
            times = [path.stat().st_mtime for path in (folder, *folder.iterdir())]
            if time.time() - max(times) > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)
