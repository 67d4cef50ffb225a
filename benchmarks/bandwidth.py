"""How fast this machine reads memory: a big array read in several forms; the fastest is the yardstick."""

import functools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.processes import answer
from benchmarks.results import Bandwidth, Plan, Spread
from benchmarks.shapes import SHAPES
from neuroscope_jax import platforms

ROW = 4096  # float32 numbers
READS = 8
SMALL = 512 << 20  # bytes, several times a last cache


def probe(plan: Plan) -> Bandwidth:
    """Read an array of the size of the shape's embedding table, each form READS times."""
    device = platforms.choose(plan.platform)
    model = SHAPES[plan.shape].model
    forms = forms_of(4 * model.vocab_size * model.hidden_size, device)
    speeds = {name: Spread.of([read() for _ in range(READS)]) for name, read in forms.items()}
    return Bandwidth(platforms.describe(device), speeds)


def forms_of(nbytes: int, device: jax.Device) -> dict[str, Callable[[], float]]:
    """Ways to read an array of so many bytes, each of which gives the bytes a second that it took."""
    array = np.ones((max(nbytes // (4 * ROW), os.cpu_count() or 1), ROW), np.float32)
    forms = _xla_forms(jax.device_put(array))
    if device.platform == "cpu":
        forms |= _numpy_forms(array)
    for read in forms.values():
        read()
    return {name: functools.partial(_speed, read, array.nbytes) for name, read in forms.items()}


def _xla_forms(array: jax.Array) -> dict[str, Callable[[], object]]:
    total = jax.jit(jnp.sum)
    row = jnp.ones(ROW)
    product = jax.jit(lambda array, row: array @ row)
    return {
        "XLA sum": lambda: total(array).block_until_ready(),
        "XLA matrix times vector": lambda: product(array, row).block_until_ready(),
    }


def _numpy_forms(array: np.ndarray) -> dict[str, Callable[[], object]]:
    """A thread a core, each on its own part."""
    cores = os.cpu_count() or 1
    pool = ThreadPoolExecutor(cores)
    parts = np.array_split(array, cores)
    row = np.ones(ROW, np.float32)
    return {
        "NumPy sum": lambda: list(pool.map(np.sum, parts)),
        "NumPy matrix times vector": lambda: list(pool.map(lambda part: part @ row, parts)),
        "NumPy maximum": lambda: list(pool.map(np.max, parts)),
    }


def _speed(read: Callable[[], object], nbytes: int) -> float:
    start = time.perf_counter()
    read()
    return nbytes / (time.perf_counter() - start)


if __name__ == "__main__":
    answer(probe, Plan)
