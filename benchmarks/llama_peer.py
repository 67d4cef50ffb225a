"""Plain decoding by llama.cpp: no features, the yardstick of what reading the weights costs.

The file is mapped, and only what is read of it counts as memory of the process.
"""

import functools
import os
import time
from pathlib import Path

import llama_cpp

from benchmarks.gguf_model import gguf_file
from benchmarks.memory import peak_bytes
from benchmarks.peer_figures import figures
from benchmarks.processes import answer
from benchmarks.results import Peer, Plan
from benchmarks.shapes import SHAPES


def generate(model: llama_cpp.Llama, ids: tuple[int, ...], tokens: int) -> tuple[list[int], list[float]]:
    """Greedy tokens, and when each was there, in seconds from the start."""
    model.reset()  # or it would go on from what it has read of an earlier prompt
    began = time.perf_counter()
    chosen: list[int] = []
    arrivals: list[float] = []
    for token in model.generate(list(ids), temp=0.0, reset=False):
        chosen.append(int(token))
        arrivals.append(time.perf_counter() - began)
        if len(chosen) == tokens:
            break
    return chosen, arrivals


def measure(plan: Plan) -> Peer:
    """Everything about one file."""
    shape = SHAPES[plan.shape]
    began = time.perf_counter()
    model = _load(gguf_file(Path(plan.folder), plan.gguf), shape.context_length)
    loaded = time.perf_counter()
    return figures(plan, loaded - began, functools.partial(generate, model), peak_bytes, features=False)


def _load(path: Path, context_length: int) -> llama_cpp.Llama:
    cores = os.cpu_count() or 1
    _without_matrix_form()
    return llama_cpp.Llama(
        str(path), n_ctx=context_length, n_threads=cores, n_threads_batch=cores, n_gpu_layers=0, verbose=False
    )


def _without_matrix_form() -> None:
    """Without weights laid out anew for AMX: with Q8_0 that ends in a segmentation fault (ggml-org/llama.cpp#20824).

    Its Python class has no parameter for that.
    """
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.is_file() or "amx_tile" not in cpuinfo.read_text():
        return
    binding = llama_cpp.llama_cpp
    usual = binding.llama_model_default_params()
    usual.use_extra_bufts = False
    binding.llama_model_default_params = lambda: usual


if __name__ == "__main__":
    answer(measure, Plan)
