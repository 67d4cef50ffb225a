"""A corpus as token ids on disk: its size is no matter for memory, and a restarted pass reads the same tokens."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Int

from neuroscope_jax.corpus.documents import Corpus
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.samples import Texts
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import set_aside
from neuroscope_jax.models.chat import ChatTokenizer

logger = logging.getLogger(__name__)

TOKENS_FILE, BEGINS_FILE = "tokens.int32", "begins.npy"
# In characters. A tokenizer takes about a kilobyte of memory for each of the text it is at.
PIECE = 50_000  # a longer document is cut, at a line's or a word's end where there is one
LOT = 500_000  # tokenised at once, on all cores


def tokenise(corpus: Corpus, tokenizer: ChatTokenizer, folder: Path) -> Texts:
    """The corpus in `folder`, written there unless it is already. Raises UserError for a corpus without tokens."""
    tokens, begins = folder / TOKENS_FILE, folder / BEGINS_FILE
    found = _begins(tokens, begins)
    if found is None:
        lengths = _write(corpus, tokenizer, tokens)
        found = np.concatenate([[0], np.cumsum(lengths)])
        with set_aside(begins) as (aside,), aside.open("wb") as file:
            np.save(file, found)
    if found[-1] == 0:
        raise UserError(f"{corpus.name}: no text in its {corpus.documents} documents; expected something to read")
    return Texts(np.memmap(tokens, np.int32, "r", shape=(int(found[-1]),)), found)


def _begins(tokens: Path, begins: Path) -> Int[np.ndarray, " M"] | None:
    """What was written earlier, None where it is not all there."""
    if not begins.exists():  # written last
        return None
    try:
        found: Int[np.ndarray, " M"] = np.load(begins)
        if tokens.stat().st_size == found[-1] * np.dtype(np.int32).itemsize:
            return found
    except (OSError, ValueError, EOFError):
        pass
    logger.warning("%s: damaged; the corpus is tokenised again", tokens.parent)
    return None


def _write(corpus: Corpus, tokenizer: ChatTokenizer, tokens: Path) -> Int[np.ndarray, " D"]:
    """Write the ids of all documents one after the other; returns how many each has."""
    lengths = np.zeros(corpus.documents, np.int64)
    with tokens.open("wb") as file, progress("tokenising", corpus.documents, "documents") as bar:
        for lot in _lots((number, piece) for number, document in enumerate(corpus) for piece in pieces(document.text)):
            if lot[-1][0] >= corpus.documents:
                raise UserError(f"{corpus.name}: the texts were changed while they were read; start again")
            for (number, _), ids in zip(lot, tokenizer.encode_documents([piece for _, piece in lot]), strict=True):
                file.write(np.array(ids, np.int32).tobytes())
                lengths[number] += len(ids)
            bar.update(lot[-1][0] + 1 - bar.n)
    return lengths


def pieces(text: str) -> Iterator[str]:
    """The text in parts of at most PIECE characters; each begins with the line break or space it was cut at."""
    start = 0
    while len(text) - start > PIECE:
        cut = next((at for mark in "\n " if (at := text.rfind(mark, start + 1, start + PIECE)) > 0), start + PIECE)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _lots(numbered: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    lot: list[tuple[int, str]] = []
    characters = 0
    for number, piece in numbered:
        lot.append((number, piece))
        characters += len(piece) + 1  # an empty one counts too
        if characters >= LOT:
            yield lot
            lot, characters = [], 0
    if lot:
        yield lot
