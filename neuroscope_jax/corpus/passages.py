"""The samples that examples were taken from, with their tokens: what it takes to show an example in its context."""

import dataclasses

import numpy as np
from jaxtyping import Int

from neuroscope_jax.corpus.collected import Collected, Entries
from neuroscope_jax.corpus.samples import STRIDE, Samples, Texts
from neuroscope_jax.corpus.windows import AFTER, BEFORE

OUTSIDE = -1  # in place of an id where the sample has ended


@dataclasses.dataclass(frozen=True)
class Passages:
    """Samples by rising (document, chunk), where chunk counts the stretches of a document."""

    document: Int[np.ndarray, " n"]
    chunk: Int[np.ndarray, " n"]
    ids: Int[np.ndarray, "n stride"]  # right-padded with OUTSIDE
    slot: Int[np.ndarray, " n"]  # in the pool of windows, -1 for none
    start: Int[np.ndarray, " n"]  # place in the row of the window's first token; BOS is at 0

    def find(self, document: Int[np.ndarray, "*n"], offset: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
        """The number of the passage that holds each token."""
        return np.searchsorted(sample_name(self.document, self.chunk), sample_name(document, offset // STRIDE))

    def contexts(self, document: Int[np.ndarray, "*n"], offset: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n 25"]:
        """Ids from BEFORE tokens before each token to AFTER behind it; OUTSIDE beyond its sample."""
        place = (offset % STRIDE)[..., None] + np.arange(-BEFORE, AFTER + 1)
        inside = (place >= 0) & (place < STRIDE)
        ids = self.ids[self.find(document, offset)[..., None], np.clip(place, 0, STRIDE - 1)]
        return np.where(inside, ids, OUTSIDE)


def cited(texts: Texts, samples: Samples, collected: Collected) -> Passages:
    """The samples that an example or a window of the pool comes from."""
    names = sample_name(samples.document, samples.offset // STRIDE)
    wanted = np.concatenate([_names(collected.top), _names(collected.drawn), names[samples.slot >= 0]])
    at = np.flatnonzero(np.isin(names, wanted))
    places = np.arange(STRIDE)
    inside = places < samples.length[at, None]
    first = texts.begins[samples.document[at]] + samples.offset[at]
    ids = np.where(inside, texts.tokens[np.where(inside, first[:, None] + places, 0)], OUTSIDE)
    chunk = samples.offset[at] // STRIDE
    return Passages(samples.document[at], chunk, ids.astype(np.int32), samples.slot[at], samples.start[at])


def joined(parts: list[Passages]) -> Passages:
    """The passages of several hosts, each sample once."""
    names = [field.name for field in dataclasses.fields(Passages)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    once = np.unique(sample_name(columns["document"], columns["chunk"]), return_index=True)[1]
    return Passages(**{name: column[once] for name, column in columns.items()})


def _names(entries: Entries) -> Int[np.ndarray, " n"]:
    kept = entries.activation > 0
    return np.unique(sample_name(entries.document[kept], entries.offset[kept] // STRIDE))


def sample_name(document: Int[np.ndarray, "*n"], chunk: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """One number a sample, rising with (document, chunk)."""
    name: Int[np.ndarray, "*n"] = document.astype(np.int64) << 32 | chunk
    return name
