"""One pass over the samples of this host: batches to the devices, the state to disk now and then, the result back.

rows of batch i+1 are put together while the devices work on batch i
"""

import dataclasses
import logging
import time

import flax.linen as nn
import jax
import numpy as np
from jaxtyping import Int
from tqdm import tqdm

from neuroscope_jax.corpus import samples as samples_module
from neuroscope_jax.corpus.checkpoint import Checkpoints
from neuroscope_jax.corpus.collected import Collected, collect
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.samples import LENGTH, Samples, Texts
from neuroscope_jax.corpus.state import Batch
from neuroscope_jax.corpus.step import Outcome, corpus_step, empty_states, split
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.models.weights import Params
from neuroscope_jax.sae.autoencoder import SparseAutoencoder

logger = logging.getLogger(__name__)

ACTIVATIONS = 1 << 27  # bytes of one batch's [B, T, E] on a device at most
MOST_ROWS = {"cpu": 16}  # a CPU gains nothing from more; elsewhere the bytes decide


@dataclasses.dataclass(frozen=True)
class Pass:
    """What is run over what."""

    model: nn.Module  # ends at the tapped block
    params: Params
    sae: SparseAutoencoder
    texts: Texts
    samples: Samples
    structure: Structure
    seed: int


def rows_a_device(sae: SparseAutoencoder) -> int:
    """Samples a device takes at once."""
    fitting = max(1, ACTIVATIONS // (4 * LENGTH * sae.d_sae))
    return min(fitting, MOST_ROWS.get(jax.default_backend(), fitting))


def run(
    work: Pass, numbers: Int[np.ndarray, " n"], mesh: jax.sharding.Mesh, checkpoints: Checkpoints, every: float
) -> Collected:
    """Count in the samples of these numbers, going on from the last saved state; saves one every `every` seconds.

    Raises UserError where a state cannot be saved or is damaged, FloatingPointError for residuals that are not finite.
    """
    done, states = checkpoints.restore(empty_states(mesh, work.sae.d_sae))
    batches = _batches(numbers, rows_a_device(work.sae) * mesh.size)
    tokens = np.where(batches >= 0, work.samples.length[batches], 0).sum(1)
    if done:
        logger.info("%d of %d tokens are counted already", tokens[:done].sum(), tokens.sum())
    saved, outcome = time.monotonic(), None
    with progress("corpus pass", int(tokens.sum()), "tokens", int(tokens[:done].sum())) as bar:
        for number in range(done, len(batches)):
            batch = _batch(work, batches[number], mesh)
            if outcome is not None:  # the batch before, at work while this one was put together
                _look_at(outcome, bar)
            states, outcome = corpus_step(work.model, work.params, work.sae, states, batch, work.seed, mesh)
            bar.update(tokens[number])
            last = number + 1 == len(batches)
            if last or time.monotonic() - saved > every:  # the last one too: trouble with the results costs no work
                _look_at(outcome, bar)
                checkpoints.save(number + 1, states)
                saved = time.monotonic()
    return collect(states)


def _look_at(outcome: Outcome, bar: "tqdm[None]") -> None:
    if not outcome.finite:
        raise FloatingPointError("the residual stream at the tapped layer is not finite")
    bar.set_postfix_str(f"{int(outcome.features_seen):,} features seen")


def _batches(numbers: Int[np.ndarray, " n"], rows: int) -> Int[np.ndarray, "batches rows"]:
    """The numbers in lots of `rows`, the last one filled up with -1."""
    count = -(-len(numbers) // rows)
    return np.pad(numbers, (0, count * rows - len(numbers)), constant_values=-1).reshape(count, rows)


def _batch(work: Pass, numbers: Int[np.ndarray, " B"], mesh: jax.sharding.Mesh) -> Batch:
    """The samples of these numbers on the devices."""
    rows = samples_module.rows(work.texts, work.samples, work.structure, numbers)
    batch: Batch = jax.device_put(Batch(**vars(rows)), split(mesh))
    return batch
