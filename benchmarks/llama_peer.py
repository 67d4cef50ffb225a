"""Plain decoding by llama.cpp: no features, the yardstick of what reading the weights costs.

The file is mapped, and only what is read of it counts as memory of the process.
"""

import os
import time
from pathlib import Path

import llama_cpp

from benchmarks.gguf_model import gguf_file
from benchmarks.memory import peak_bytes
from benchmarks.patience import first_tokens
from benchmarks.processes import answer
from benchmarks.prompts import prompt
from benchmarks.results import Peer, Plan, Spread
from benchmarks.shapes import SHAPES
from benchmarks.stopwatch import per_second


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
    lengths = plan.prompts or shape.prompts
    ids = prompt(plan.shape, lengths[0])
    generate(model, ids, 2)
    first = first_tokens(lambda ids: generate(model, ids, 1)[1][0], plan, lengths)
    answers = [generate(model, ids, plan.tokens) for _ in range(plan.repeats)]
    return Peer(
        load_seconds=loaded - began,
        first_token_seconds=first,
        tokens_per_second=Spread.of([per_second(arrivals) for _, arrivals in answers]),
        peak_bytes=peak_bytes(),
        ids=answers[0][0],
        features=False,
    )


def _load(path: Path, context_length: int) -> llama_cpp.Llama:
    cores = os.cpu_count() or 1
    return llama_cpp.Llama(
        str(path), n_ctx=context_length, n_threads=cores, n_threads_batch=cores, n_gpu_layers=0, verbose=False
    )


if __name__ == "__main__":
    answer(measure, Plan)
