"""Several sources as one: how many documents each gives by its weight, and in which order they follow one another."""

import collections
import functools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuroscope_jax.config import CorpusSource
from neuroscope_jax.corpus import hub, wikitext
from neuroscope_jax.corpus.folder import Folder
from neuroscope_jax.corpus.rows import Rows, StreamedRows
from neuroscope_jax.corpus.source import Document, Source
from neuroscope_jax.models.hub import DEMO, DEMO_FOLDER

logger = logging.getLogger(__name__)

SEED = 0  # of the choice within each source


def open_source(source: CorpusSource) -> Source:
    """The file, folder or dataset that a [[corpus]] table names. Raises UserError where it cannot be had."""
    if source.path:
        return open_folder(source)
    name, repo = hub.describe(source), hub.dataset_id(source.dataset or "")
    if repo == wikitext.DATASET:
        return wikitext.Articles(*hub.fetch(source, whole=True), source.text_field, name)
    dataset, version = hub.fetch(source)
    if hasattr(dataset, "num_shards"):
        return StreamedRows(dataset, version, source.text_field, name, repo)
    return Rows(dataset, version, source.text_field, name)


def open_folder(source: CorpusSource) -> Folder:
    """The file or folder of a source that has a path."""
    asked = source.path or ""
    path = DEMO_FOLDER / "corpus.jsonl.gz" if asked == DEMO else Path(asked).expanduser()
    return Folder(path, source.text_field, asked)


def name_of(sources: Sequence[CorpusSource]) -> str:
    """For people: the sources, with their shares where there are several."""
    total = sum(source.weight for source in sources)
    shares = [f"{source.weight / total:.0%} " if len(sources) > 1 else "" for source in sources]
    return " + ".join(share + (s.path or hub.describe(s)) for share, s in zip(shares, sources, strict=True))


def turns(many: int, weights: Sequence[float], available: Sequence[int | None]) -> Iterator[int]:
    """Which source gives each of `many` documents, so that every prefix is as near to the weights as it can be.

    A source with none left is passed over, and the others share its turns by their weights; `available` is None for a
    source that is not counted. Ends early where all are out. The order depends on nothing but the arguments.
    """
    credit = [0.0] * len(weights)
    taken = [0] * len(weights)
    for _ in range(many):
        left = [i for i, limit in enumerate(available) if limit is None or taken[i] < limit]
        if not left:
            return
        total = sum(weights[i] for i in left)
        for i in left:
            credit[i] += weights[i] / total
        chosen = max(left, key=lambda i: (round(credit[i], 9), -i))
        credit[chosen] -= 1
        taken[chosen] += 1
        yield chosen


class Mix:
    """The opened sources of a config, and `many` documents of them, or all there are."""

    def __init__(self, asked: Sequence[CorpusSource], many: int) -> None:
        self.sources = [open_source(source) for source in asked]
        available = [source.documents for source in self.sources]
        self._turns = functools.partial(turns, many, [source.weight for source in asked], available)
        counts = collections.Counter(self._turns())
        self.shares = [counts[i] for i in range(len(asked))]
        self.whole = self.shares == available  # nothing is left out
        for source, share in zip(self.sources, self.shares, strict=True):
            if share == source.documents:
                logger.info("%s gives all of its %d documents", source.name, share)

    def __iter__(self) -> Iterator[tuple[int, Document]]:
        """(index of the source, document), in an order that depends on the sources and SEED only."""
        streams = [source.choose(share, SEED) for source, share in zip(self.sources, self.shares, strict=True)]
        ended = set()
        for i in self._turns():
            document = next(streams[i], None)
            if document is not None:
                yield i, document
            elif i not in ended:  # one that could not be counted
                ended.add(i)
                self.whole = True
                logger.warning("%s ended before its share of %d documents", self.sources[i].name, self.shares[i])
