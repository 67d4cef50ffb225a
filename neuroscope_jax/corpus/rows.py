"""The rows of a hub dataset as documents, one a row: looked up where the dataset is here, streamed where it is not."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroscope_jax.corpus import hub
from neuroscope_jax.corpus.readers import as_bytes
from neuroscope_jax.corpus.source import Document, Source

BATCH = 10_000  # rows looked at together
SHARDS = 32  # files of a streamed dataset to take rows from


class Rows(Source):
    """Those of a datasets.Dataset that hold text."""

    def __init__(self, dataset: Any, commit: str | None, text_field: str, name: str) -> None:
        self.dataset, self.commit, self.text_field, self.name = dataset, commit, text_field, name
        self.filled = np.flatnonzero(matching(dataset, text_field, r"\S"))

    @property
    def version(self) -> str | None:
        """The commit."""
        return self.commit

    @property
    def documents(self) -> int:
        """How many rows hold text."""
        return len(self.filled)

    def choose(self, many: int, seed: int) -> Iterator[Document]:
        """A random choice, in random order."""
        for number in random.Random(seed).sample(range(self.documents), min(many, self.documents)):
            row = int(self.filled[number])
            yield Document(texts(self.dataset, self.text_field, row, row + 1)[0], self.name, row)


class StreamedRows(Source):
    """Those of a datasets.IterableDataset: the first ones of some of its shards."""

    def __init__(self, dataset: Any, commit: str | None, text_field: str, name: str, repo: str) -> None:
        self.dataset, self.commit, self.text_field = dataset, commit, text_field
        self.name, self.repo = name, repo

    @property
    def version(self) -> str | None:
        """The commit."""
        return self.commit

    @property
    def documents(self) -> None:
        """Not known before the last row was read."""
        return None

    def choose(self, many: int, seed: int) -> Iterator[Document]:
        """Equal numbers from up to SHARDS shards in random order, more from the next ones where those are short."""
        shards = self.dataset.num_shards
        left = many
        for number, shard in enumerate(random.Random(seed).sample(range(shards), shards)):
            share = -(-left // max(1, min(SHARDS, shards) - number))
            for document in self._first(shard, share):
                left -= 1
                yield document
            if left == 0:
                return

    def _first(self, shard: int, share: int) -> Iterator[Document]:
        name = f"{self.name} shard {shard}"
        with hub.explained(self.repo):
            for row, values in enumerate(self.dataset.shard(self.dataset.num_shards, shard)):
                text = values.get(self.text_field)
                if isinstance(text, str) and text.strip():
                    yield Document(text, name, row)
                    share -= 1
                    if share == 0:
                        return


def matching(dataset: Any, text_field: str, pattern: str) -> np.ndarray:
    """Which rows of a Dataset match a regular expression: bool [rows]."""
    import pyarrow
    from pyarrow import compute

    found = [np.zeros(0, bool)]
    for table in dataset.with_format("arrow").iter(batch_size=BATCH):
        # As bytes: an invalid character in one row would end the whole search.
        column = table.column(text_field).combine_chunks().cast(pyarrow.large_binary())
        matches = compute.match_substring_regex(column, pattern=pattern)
        found.append(compute.fill_null(matches, False).to_numpy(zero_copy_only=False))
    return np.concatenate(found)


def texts(dataset: Any, text_field: str, start: int, stop: int) -> list[str]:
    """The texts of a range of rows of a Dataset."""
    table = dataset.with_format("arrow")[start:stop]
    return [(value or b"").decode(errors="replace") for value in as_bytes(table.column(text_field).combine_chunks())]
