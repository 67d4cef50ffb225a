"""A corpus as token ids on disk: its size is no matter for memory, and a restarted pass reads the same tokens."""

import itertools
import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from neuroscope_jax.corpus.documents import Corpus
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.samples import Texts
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.chat import ChatTokenizer

logger = logging.getLogger(__name__)

TOKENS_FILE, BEGINS_FILE = "tokens.int32", "begins.npy"
LOT = 256  # documents tokenised at once, on all cores


def tokenise(corpus: Corpus, tokenizer: ChatTokenizer, folder: Path) -> Texts:
    """The corpus in `folder`, written there unless it is already. Raises UserError for a corpus without tokens."""
    tokens, begins = folder / TOKENS_FILE, folder / BEGINS_FILE
    if not begins.exists():  # written last
        lengths = _write(corpus, tokenizer, tokens)
        aside = begins.with_suffix(".part")
        with aside.open("wb") as file:
            np.save(file, np.concatenate([[0], np.cumsum(lengths)]))
        aside.replace(begins)
    found = np.load(begins)
    if found[-1] == 0:
        raise UserError(f"{corpus.name}: no text in its {corpus.documents} documents; expected something to read")
    return Texts(np.memmap(tokens, np.int32, "r", shape=(int(found[-1]),)), found)


def _write(corpus: Corpus, tokenizer: ChatTokenizer, tokens: Path) -> list[int]:
    """Write the ids of all documents one after the other; returns how many each has."""
    lengths: list[int] = []
    texts = (document.text for document in corpus)
    with tokens.open("wb") as file, progress("tokenising", corpus.documents, "documents") as bar:
        for lot in _lots(texts):
            for ids in tokenizer.encode_documents(lot):
                file.write(np.array(ids, np.int32).tobytes())
                lengths.append(len(ids))
            bar.update(len(lot))
    return lengths


def _lots(texts: Iterable[str]) -> Iterable[list[str]]:
    texts = iter(texts)
    return iter(lambda: list(itertools.islice(texts, LOT)), [])
