"""The manifest beside a cached corpus: what was asked for, what came of it, and where each text is from."""

import msgspec

from neuroscope_jax.config import CorpusSource


class Part(msgspec.Struct):
    """One source as it was asked for, and what it gave."""

    asked: CorpusSource
    name: str
    version: str | None
    documents: int
    available: int | None


class Origins(msgspec.Struct):
    """Of each document, in columns: its source as an index into `names`, its row, the start of its text's SHA-256."""

    names: list[str]
    source: list[int]
    row: list[int]
    sha256: list[str]


class Manifest(msgspec.Struct):
    """What a cached corpus holds."""

    name: str
    parts: list[Part]
    seed: int
    asked: int  # documents
    documents: int
    whole: bool  # the sources have no more
    characters: int
    sha256: str  # of all texts in order
    file_sha256: str  # of documents.jsonl.gz
    made: str
    version: str
    origins: Origins
