"""A corpus as the passes see it: documents in a fixed order, read as often as wanted, and the digest of them all."""

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from neuroscope_jax.config import CorpusSource, NeuroscopeConfig
from neuroscope_jax.corpus import store
from neuroscope_jax.corpus.build import build
from neuroscope_jax.corpus.mix import open_folder
from neuroscope_jax.corpus.source import Document, TextDigest
from neuroscope_jax.corpus.store import Stored
from neuroscope_jax.errors import UserError

__all__ = ["Corpus", "Document", "open_corpus"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """Documents 0, 1, 2 … of one or more sources. Iterating starts anew each time and holds one document in memory."""

    name: str  # for people
    sha256: str  # of all texts in order
    documents: int
    read: Callable[[], Iterator[Document]] = field(repr=False)

    def __iter__(self) -> Iterator[Document]:
        """Always the same documents; raises UserError at the end where they are no longer those that were opened."""
        digest = TextDigest()
        for document in self.read():
            digest.add(document.text)
            yield document
        if digest.hexdigest() != self.sha256:
            raise UserError(f"{self.name}: the texts were changed while they were read; start again")


def open_corpus(config: NeuroscopeConfig, corpus_path: str | None, samples: int) -> Corpus:
    """The corpus at a path, read where it is, or that of the config's sources, from the cache or fetched into it.

    From sources come `samples` documents, or all they have; which ones does not depend on what is in the cache.
    Raises UserError where there is no text.
    """
    if corpus_path:
        logger.info("corpus %s: reading it once to count its documents", corpus_path)
        folder = open_folder(CorpusSource(path=corpus_path))
        return Corpus(corpus_path, folder.sizes.sha256, folder.documents, folder.read)
    # Datasets come in random order, and a larger choice begins with the smaller one. Files keep their own order.
    larger_will_do = not any(source.path for source in config.corpus)
    found = store.find(config.corpus, samples, larger_will_do) or build(config.corpus, samples)
    corpus = first_of(found, samples)
    logger.info("corpus %s: %d documents from %s", corpus.name, corpus.documents, found.folder)
    return corpus


def first_of(stored: Stored, documents: int) -> Corpus:
    """A cached corpus, or its first documents where it has more than are wanted."""
    manifest = stored.manifest
    if manifest.documents <= documents:
        return Corpus(manifest.name, manifest.sha256, manifest.documents, stored.read)

    def read() -> Iterator[Document]:
        return itertools.islice(stored.read(), documents)

    digest = TextDigest()
    for document in read():
        digest.add(document.text)
    return Corpus(manifest.name, digest.hexdigest(), documents, read)
