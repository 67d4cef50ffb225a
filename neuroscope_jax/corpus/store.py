"""Corpora kept in the cache folder: one folder each, never changed once it is there.

    corpus/<name>-<documents asked>-<digest of the sources>/documents.jsonl.gz   one {"text": …} a line
                                                            manifest.json        where each of them is from

Corpora of several sizes stand side by side, so that what was computed from one can be computed again.
"""

import dataclasses
import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuroscope_jax.config import CorpusSource, cache_folder
from neuroscope_jax.corpus import hub
from neuroscope_jax.corpus.manifest import Manifest
from neuroscope_jax.corpus.mix import SEED, open_folder
from neuroscope_jax.corpus.readers import Damaged, read_gzip_json_lines
from neuroscope_jax.corpus.source import Document
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json

logger = logging.getLogger(__name__)

TEXTS = "documents.jsonl.gz"
MANIFEST = "manifest.json"
FORMAT = 1  # another where texts are made from the same sources in another way


@dataclass(frozen=True)
class Stored:
    """A cached corpus and its folder."""

    folder: Path
    manifest: Manifest

    def read(self) -> Iterator[Document]:
        """The documents, in order."""
        origins = self.manifest.origins
        texts = read_gzip_json_lines(self.folder / TEXTS, "text", lambda *_: None)
        try:
            for (_, text), source, row in zip(texts, origins.source, origins.row, strict=True):
                yield Document(text, origins.names[source], row)
        except (Damaged, ValueError, IndexError) as error:
            raise UserError(
                f"{self.folder}: damaged while it was read ({error}); delete it and build it again"
            ) from error

    def check(self) -> None:
        """Raises UserError where the texts are not those that were stored."""
        path = self.folder / TEXTS
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        if found != self.manifest.file_sha256:
            raise UserError(f"{path}: damaged, its SHA-256 is not the one in {MANIFEST}")


def corpus_folder() -> Path:
    """Where corpora are kept."""
    return cache_folder() / "corpus"


def stored() -> Iterator[tuple[Path, Stored | UserError]]:
    """Every corpus in the cache, or why it cannot be read, by name."""
    for folder in sorted(corpus_folder().glob("*/")):
        if folder.name.startswith("."):
            continue
        try:
            yield folder, opened(folder)
        except UserError as error:
            yield folder, error


def find(sources: Sequence[CorpusSource], many: int, larger_will_do: bool = True) -> Stored | None:
    """The smallest cached corpus of these sources with `many` documents, or all they have. Damaged ones are logged.

    Only one that was made for exactly `many` is found where a larger one will not do.
    """
    fitting = []
    exact = folder_for(sources, many)
    folders = corpus_folder().glob(f"*-{_digest(sources)}") if larger_will_do else [exact] if exact.exists() else []
    for folder in sorted(folders):
        try:
            fitting.append(opened(folder))
        except UserError as error:
            logger.warning("%s", error)
    enough = [s for s in fitting if s.manifest.documents >= many or s.manifest.whole]
    for candidate in sorted(enough, key=lambda s: s.manifest.documents):
        try:
            candidate.check()
        except UserError as error:
            logger.warning("%s; it is not used", error)
            continue
        return candidate
    return None


def folder_for(sources: Sequence[CorpusSource], many: int) -> Path:
    """Where `many` documents of these sources are kept."""
    return corpus_folder() / f"{_slug(sources)}-{many}-{_digest(sources)}"


def opened(folder: Path) -> Stored:
    """The corpus in a folder, its texts not yet checked. Raises UserError where its manifest is damaged."""
    manifest = read_json(folder / MANIFEST, Manifest)
    origins = manifest.origins
    if not manifest.documents == len(origins.source) == len(origins.row) == len(origins.sha256):
        raise UserError(f"{folder / MANIFEST}: damaged, its columns are not of {manifest.documents} documents")
    return Stored(folder, manifest)


def _digest(sources: Sequence[CorpusSource]) -> str:
    """Eight hexadecimal digits that differ where the same documents are not to be expected."""
    total = sum(source.weight for source in sources)
    told: list[object] = [FORMAT, SEED]
    for source in sources:
        fields = dataclasses.asdict(source) | {"weight": round(source.weight / total, 9)}
        if source.path:
            opened = open_folder(source)
            fields |= {"path": str(opened.path.resolve()), "version": opened.version}
        else:
            fields["dataset"] = hub.dataset_id(source.dataset or "")
        told.append(fields)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


def _slug(sources: Sequence[CorpusSource]) -> str:
    first = sources[0]
    name = Path(first.path).name if first.path else f"{first.config or first.dataset}-{first.split}"
    return re.sub(r"[^A-Za-z0-9.]+", "-", name if len(sources) == 1 else "mix").strip("-.") or "corpus"
