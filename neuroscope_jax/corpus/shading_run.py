"""Examples' samples run once more: batches of passages to the devices, activations around the examples back.

device 0   lot 0 of passages, and the examples in it       a lot is as many rows as a device takes at once;
device 1   lot 1 …                                         batch i is lots i · devices …
"""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.passages import OUTSIDE, sample_name
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.run import rows_a_device
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.corpus.shading_step import Stretches, activations_of
from neuroscope_jax.corpus.step import local_mesh, split
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.corpus.windows import WIDTH

PASSAGES_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Asked:
    """Examples around which activations are asked for."""

    feature: Int[np.ndarray, " n"]
    document: Int[np.ndarray, " n"]
    offset: Int[np.ndarray, " n"]
    at: Int[np.ndarray, " n"]  # of the token in the context
    length: Int[np.ndarray, " n"]  # of the context, in tokens

    def __len__(self) -> int:
        return len(self.feature)

    def some(self, which: Bool[np.ndarray, " n"]) -> "Asked":
        """Those at which `which` is true."""
        return Asked(**{name: column[which] for name, column in vars(self).items()})

    @property
    def sample(self) -> Int[np.ndarray, " n"]:
        """The sample of each as one number."""
        sample: Int[np.ndarray, " n"] = sample_name(self.document, self.offset // STRIDE)
        return sample

    @property
    def first(self) -> Int[np.ndarray, " n"]:
        """Place of the context's first token in its sample."""
        first: Int[np.ndarray, " n"] = self.offset % STRIDE - self.at
        return first


@dataclasses.dataclass(frozen=True)
class _Batch:
    """One batch at work."""

    ids: Int[np.ndarray, "B stride"]  # the samples of all devices, BOS not among them
    examples: Int[np.ndarray, " C"]  # which ones are read there; -1 only fills up
    found: Float[Array, "C 25"]
    finite: Bool[Array, ""]


def activations_around(pair: setup.Pair, asked: Asked, passages: Any) -> Float[np.ndarray, "n 25"]:
    """Activations at the tokens of each context, 0 at structure; what lies beyond a context's length means nothing.

    `passages` is the ParquetFile of the samples. Raises FloatingPointError for residuals that are not finite,
    LookupError where a sample is not in the file.
    """
    structure = Structure.of(pair.tokenizer)
    names, number = np.unique(asked.sample, return_inverse=True)
    values = np.zeros((len(asked), WIDTH), np.float32)
    first = 0  # number of the batch's first sample
    if not len(asked):
        return values
    with progress("shading", len(names), "samples") as bar:
        for batch in _one_behind(_at_work(pair, asked, number, _samples(passages, names), structure)):
            real = batch.examples[batch.examples >= 0]
            found = np.asarray(batch.found)[batch.examples >= 0]
            if not batch.finite:
                raise FloatingPointError("the residual stream at the tapped layer is not finite")
            places = np.minimum(asked.first[real, None] + np.arange(WIDTH), STRIDE - 1)
            counted = ~structure.where(batch.ids)[number[real, None] - first, places]
            values[real] = np.where(counted, found, 0)
            bar.update(min(len(batch.ids), len(names) - first))
            first += len(batch.ids)
    return values


def _at_work(
    pair: setup.Pair,
    asked: Asked,
    number: Int[np.ndarray, " n"],
    samples: Iterator[Int[np.ndarray, " stride"]],
    structure: Structure,
) -> Iterator[_Batch]:
    """Batches as they are sent off; `number` says in which of the samples each example lies."""
    mesh = local_mesh()
    part, params, sae = pair.load(mesh)
    rows = rows_a_device(sae)
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(0, number.max() + mesh.size * rows + 1, rows))  # of the lots
    most = int(np.diff(ends).max())
    for lot in range(0, -(-(int(number.max()) + 1) // rows), mesh.size):
        ids = _filled(list(itertools.islice(samples, rows * mesh.size)), rows * mesh.size)
        lots = [order[ends[i] : ends[i + 1]] for i in range(lot, lot + mesh.size)]
        examples = np.concatenate([np.pad(some, (0, most - len(some)), constant_values=-1) for some in lots])
        columns = number[examples] % rows, 1 + asked.first[examples], asked.feature[examples]
        stretches = Stretches(*(column.astype(np.int32) for column in columns))
        fed = np.where(ids == OUTSIDE, structure.bos_id, ids)
        fed = np.pad(fed, ((0, 0), (1, 0)), constant_values=structure.bos_id)
        inputs = jax.device_put((fed, stretches), split(mesh))
        yield _Batch(ids, examples, *activations_of(part, params, sae, *inputs, mesh))


def _one_behind(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """Each batch when the next one is at work."""
    before = None
    for batch in batches:
        if before is not None:
            yield before
        before = batch
    if before is not None:
        yield before


def _samples(passages: Any, names: Int[np.ndarray, " m"]) -> Iterator[Int[np.ndarray, " stride"]]:
    """Ids of the samples of these names, which rise as in the file."""
    found = 0
    for some in passages.iter_batches(PASSAGES_AT_ONCE, columns=["document", "sample", "ids"]):
        document, sample = (some.column(name).to_numpy() for name in ("document", "sample"))
        lists = some.column("ids")
        ids, ends = lists.values.to_numpy(), lists.offsets.to_numpy()
        for i in np.flatnonzero(np.isin(sample_name(document, sample), names)):
            found += 1
            yield np.pad(ids[ends[i] : ends[i + 1]], (0, STRIDE - ends[i + 1] + ends[i]), constant_values=OUTSIDE)
    if found < len(names):
        raise LookupError(f"{len(names) - found} of {len(names)} samples are not in it")


def _filled(samples: list[Int[np.ndarray, " stride"]], rows: int) -> Int[np.ndarray, "B stride"]:
    """The samples as rows, empty ones behind the last."""
    ids = np.full((rows, STRIDE), OUTSIDE, np.int32)
    ids[: len(samples)] = np.stack(samples)
    return ids
