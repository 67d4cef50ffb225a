"""The samples of a pass: which stretches of the tokenised corpus are read, and as which rows.

    document 0   t t t t t t t t t t t t t      stretches of at most LENGTH - 1 tokens
                 └─sample─┘└─sample─┘└tail┘
    a row        BOS t t t t t t t …  pad       what the model reads, [LENGTH]

A token of the corpus is named by (document, offset); the offset does not count BOS.
"""

import dataclasses

import numpy as np
from jaxtyping import Bool, Int, UInt32

from neuroscope_jax.corpus.hashing import hashed
from neuroscope_jax.corpus.structure import CONTEXT, Structure
from neuroscope_jax.corpus.windows import PLACES, WIDTH

LENGTH = 128  # Neuronpedia's, so that figures are comparable
STRIDE = LENGTH - 1
SHORTEST_TAIL = 32  # a document's last stretch is left out below this, unless it is the only one


@dataclasses.dataclass(frozen=True)
class Rows:
    """Samples as the model reads them. `counted` leaves out BOS, control tokens and padding."""

    ids: Int[np.ndarray, "B T"]
    counted: Bool[np.ndarray, "B T"]
    document: Int[np.ndarray, " B"]  # -1 for a row that only fills the batch
    offset: Int[np.ndarray, " B"]  # of the row's first token in its document
    slot: Int[np.ndarray, " B"]  # in the pool of windows, -1 for none
    start: Int[np.ndarray, " B"]  # place of the window's first token in the row


@dataclasses.dataclass(frozen=True)
class Texts:
    """A tokenised corpus: document d is tokens[begins[d] : begins[d + 1]]."""

    tokens: Int[np.ndarray, " N"]  # int32, a memory map
    begins: Int[np.ndarray, " M"]


@dataclasses.dataclass(frozen=True)
class Samples:
    """The chosen stretches in corpus order, int32 [n]; those with a slot give a window to the pool."""

    document: Int[np.ndarray, " n"]
    offset: Int[np.ndarray, " n"]
    length: Int[np.ndarray, " n"]  # tokens, BOS not among them
    slot: Int[np.ndarray, " n"]
    start: Int[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.document)


def choose(begins: Int[np.ndarray, " M"], count: int, seed: int) -> Samples:
    """At most `count` stretches, spread over the documents: each gives one before any gives a second.

    Which stretch of a document goes first is drawn by hash, so beginnings are not read more often than ends.
    """
    document, chunk, length = _stretches(np.diff(begins))
    drawn = hashed(seed, document.astype(np.uint32), chunk.astype(np.uint32))
    order = np.lexsort((drawn, document))
    firsts = np.searchsorted(document, np.arange(len(begins)))
    turn = np.empty(len(document), np.int64)  # 0 for the stretch its document gives first
    turn[order] = np.arange(len(document)) - firsts[document[order]]
    # Hashed again: the first of many stretches has a smaller hash than an only one, so long documents would go first.
    chosen = np.sort(np.lexsort((hashed(2, drawn), turn))[:count])
    slot, start = _windows(drawn[chosen], length[chosen])
    columns = document[chosen], chunk[chosen] * STRIDE, length[chosen], slot, start
    return Samples(*(column.astype(np.int32) for column in columns))


def rows(texts: Texts, samples: Samples, structure: Structure, numbers: Int[np.ndarray, " B"]) -> Rows:
    """The samples of these numbers as rows; -1 gives a row of padding."""
    real = numbers >= 0
    length = np.where(real, samples.length[numbers], 0)
    places = np.arange(-CONTEXT, STRIDE)  # what a token is may depend on those before it
    offset = samples.offset[numbers][:, None] + places
    inside = (offset >= 0) & (places < length[:, None])
    at = texts.begins[samples.document[numbers]][:, None] + offset
    ids = np.where(inside, texts.tokens[np.where(inside, at, 0)], structure.bos_id)
    counted = (inside & ~structure.where(ids))[:, CONTEXT:]
    ids = np.pad(ids[:, CONTEXT:], ((0, 0), (1, 0)), constant_values=structure.bos_id).astype(np.int32)

    def of(column: Int[np.ndarray, " n"]) -> Int[np.ndarray, " B"]:
        return np.where(real, column[numbers], -1).astype(np.int32)

    columns = (of(column) for column in (samples.document, samples.offset, samples.slot, samples.start))
    return Rows(ids, np.pad(counted, ((0, 0), (1, 0))), *columns)


def _stretches(
    lengths: Int[np.ndarray, " D"],
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """(document, chunk, tokens) of every stretch of documents of these lengths."""
    full, tail = np.divmod(lengths, STRIDE)
    counts = full + ((tail >= SHORTEST_TAIL) | ((full == 0) & (tail > 0)))
    document = np.repeat(np.arange(len(lengths)), counts)
    chunk = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    return document, chunk, np.minimum(lengths[document] - chunk * STRIDE, STRIDE)


def _windows(
    drawn: UInt32[np.ndarray, " n"], length: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """The PLACES samples that give a window, and where in the row it starts."""
    slot = np.full(len(drawn), -1)
    # Hashed again, because `drawn` is smaller in long documents.
    chosen = np.sort(np.argsort(hashed(3, drawn), kind="stable")[:PLACES])
    slot[chosen] = np.arange(len(chosen))
    return slot, 1 + hashed(1, drawn).astype(np.int64) % np.maximum(length - WIDTH + 1, 1)
