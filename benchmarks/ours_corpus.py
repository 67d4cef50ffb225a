"""One dtype of this project's corpus pass: as `calibrate run` does it, then its step beside the bare forward."""

import dataclasses
import functools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.corpus_results import OurPass, Passed, PassPlan, Took
from benchmarks.memory import forget_peak, peak_bytes
from benchmarks.processes import answer
from benchmarks.prompts import BOS
from benchmarks.stopwatch import timed
from neuroscope_jax import platforms
from neuroscope_jax.corpus import samples
from neuroscope_jax.corpus.checkpoint import Checkpoints
from neuroscope_jax.corpus.run import Pass, rows_a_device, run
from neuroscope_jax.corpus.samples import STRIDE, Texts
from neuroscope_jax.corpus.setup import weights_of
from neuroscope_jax.corpus.state import Batch
from neuroscope_jax.corpus.step import (
    EVERYWHERE,
    SPLIT,
    corpus_step,
    empty_states,
    local_mesh,
    replicated,
    residual_after,
    split,
)
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.models.registry import build_model, first_blocks, read_config
from neuroscope_jax.models.sharding import everything_at
from neuroscope_jax.sae.formats import load_sae

SEED = 0
# delphi knows no structure but what its reader takes out: here BOS alone, so that both count the same tokens.
ONLY_BOS = Structure(BOS, frozenset({BOS}), start_of_turn=-1, end_of_turn=-1, newline=-1, model=-1)


def measure(plan: PassPlan) -> OurPass:
    """The pass over half of the samples, over all of them, and the cost of collecting batch by batch."""
    device = platforms.choose(plan.platform)
    mesh = local_mesh()
    work = _work(plan, mesh)
    rows = min(rows_a_device(work.sae) * mesh.size, len(work.samples))
    batches = np.arange(len(work.samples) // rows * rows).reshape(-1, rows)
    steps = Steps(work, mesh, batches[0])
    _passed(work, rows, mesh, device)  # compiles the step, and lets Orbax take what it keeps
    half = _passed(work, len(work.samples) // 2, mesh, device)
    whole = _passed(work, len(work.samples), mesh, device)
    bare, full = steps.by_turns(batches)
    return OurPass(half, whole, rows, bare, full, steps.state_bytes)


class Steps:
    """The two programs that are compared, compiled, each waited for."""

    def __init__(self, work: Pass, mesh: jax.sharding.Mesh, numbers: np.ndarray) -> None:
        self._work, self._mesh = work, mesh
        self._states = empty_states(mesh, work.sae.d_sae)
        self.state_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(self._states))
        batch = self.batch(numbers)
        forward = functools.partial(residual_after, work.model)
        bare = jax.jit(jax.shard_map(forward, mesh=mesh, in_specs=(EVERYWHERE, SPLIT), out_specs=SPLIT))
        self._bare = bare.lower(work.params, batch.ids).compile()

    def batch(self, numbers: np.ndarray) -> Batch:
        """The samples of these numbers on the devices."""
        rows = samples.rows(self._work.texts, self._work.samples, self._work.structure, numbers)
        batch: Batch = jax.device_put(Batch(**dataclasses.asdict(rows)), split(self._mesh))
        return batch

    def bare(self, batch: Batch) -> None:
        """The blocks up to the tapped one."""
        self._bare(self._work.params, batch.ids).block_until_ready()

    def full(self, batch: Batch) -> None:
        """The same, the SAE, statistics and examples."""
        work = self._work
        self._states, seen = corpus_step(work.model, work.params, work.sae, self._states, batch, work.seed, self._mesh)
        jax.block_until_ready((self._states, seen))

    def by_turns(self, batches: np.ndarray) -> tuple[list[Took], list[Took]]:
        """Both for every batch; neither always follows the other."""
        taken: dict[Callable[[Batch], None], list[Took]] = {self.bare: [], self.full: []}
        order = list(taken)
        for numbers in batches:
            batch = self.batch(numbers)
            for step in order:
                taken[step].append(timed(functools.partial(step, batch))[1])
            order.reverse()
        return taken[self.bare], taken[self.full]


def _work(plan: PassPlan, mesh: jax.sharding.Mesh) -> Pass:
    """Everything loaded, each sample a document of its own."""
    folder, ids = Path(plan.folder), np.load(plan.samples)
    whole = build_model(read_config(folder), jnp.dtype(plan.dtype).type)
    model = first_blocks(whole, plan.layer + 1)
    placement = everything_at(replicated(mesh))
    params = weights_of(folder, whole, model, placement)
    sae = load_sae(Path(plan.sae), whole.config.hidden_size, placement=placement)
    begins = np.arange(len(ids) + 1) * STRIDE
    return Pass(
        model=model,
        params=params,
        sae=sae,
        texts=Texts(np.ascontiguousarray(ids[:, 1:]).reshape(-1), begins),
        samples=samples.choose(begins, len(ids), SEED),
        structure=ONLY_BOS,
        seed=SEED,
    )


def _passed(work: Pass, count: int, mesh: jax.sharding.Mesh, device: jax.Device) -> Passed:
    """The first `count` samples, as a calibration runs them."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder))
        forget_peak()
        collected, took = timed(lambda: run(work, np.arange(count), mesh, checkpoints, every=math.inf))
        checkpoints.close()
    return Passed(count * samples.LENGTH, took, peak_bytes(device), int(collected.count.sum()))


if __name__ == "__main__":
    answer(measure, PassPlan)
