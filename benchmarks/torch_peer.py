"""The same work in PyTorch: transformers' Gemma 2, a forward hook, the same SAE, greedy decoding with its own cache."""

import functools
import inspect
import os
import time
from pathlib import Path
from typing import cast

import numpy as np
import torch
from transformers import Gemma2ForCausalLM

from benchmarks.checkpoint import sae_file
from benchmarks.memory import peak_bytes
from benchmarks.peer_figures import figures
from benchmarks.processes import answer
from benchmarks.results import Peer, Plan
from benchmarks.shapes import SHAPES
from benchmarks.startup import TOP_K

DEVICES = {"cpu": "cpu", "gpu": "cuda"}
# The argument's name, and that of the output's field, changed within transformers 5.
CACHE = "cache" if "cache" in inspect.signature(Gemma2ForCausalLM.forward).parameters else "past_key_values"


class FeatureHook:
    """Encodes the last position of the block it is registered on, and keeps the top K features of each step."""

    def __init__(self, path: Path, device: str) -> None:
        with np.load(path) as arrays:
            self._W_enc, self._b_enc, self._threshold = (
                torch.from_numpy(arrays[name]).to(device) for name in ("W_enc", "b_enc", "threshold")
            )
        self.read: list[tuple[list[int], list[float]]] = []

    def __call__(self, block: torch.nn.Module, inputs: object, output: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
        residual = (output if isinstance(output, torch.Tensor) else output[0])[0, -1].float()
        pre = residual @ self._W_enc + self._b_enc
        values, indices = torch.topk(pre * (pre > self._threshold), TOP_K)
        self.read.append((indices.tolist(), values.tolist()))


def generate(model: Gemma2ForCausalLM, ids: tuple[int, ...], tokens: int) -> tuple[list[int], list[float]]:
    """Greedy tokens, and when each was there, in seconds from the start."""
    began = time.perf_counter()
    fed, cache = torch.tensor([ids], device=model.device), None
    chosen: list[int] = []
    arrivals: list[float] = []
    while len(chosen) < tokens:
        output = model(fed, **{CACHE: cache}, use_cache=True, logits_to_keep=1)
        cache = output[CACHE]
        fed = output.logits[:, -1].argmax(-1, keepdim=True)
        chosen.append(int(fed))
        arrivals.append(time.perf_counter() - began)
    return chosen, arrivals


def measure(plan: Plan) -> Peer:
    """Everything about one dtype."""
    torch.set_num_threads(os.cpu_count() or 1)
    shape, device = SHAPES[plan.shape], DEVICES[plan.platform]
    began = time.perf_counter()
    model = load(plan, device)
    hook = FeatureHook(sae_file(Path(plan.folder)), device)
    loaded = time.perf_counter()
    model.model.layers[shape.layer].register_forward_hook(hook)
    peak = peak_bytes if device == "cpu" else torch.cuda.max_memory_allocated
    return figures(plan, loaded - began, functools.partial(generate, model), peak)


def load(plan: Plan, device: str) -> Gemma2ForCausalLM:
    """The checkpoint in the plan's dtype, for inference."""
    model = Gemma2ForCausalLM.from_pretrained(plan.folder, dtype=getattr(torch, plan.dtype), local_files_only=True)
    return cast(Gemma2ForCausalLM, cast(torch.nn.Module, model).to(device).eval())


if __name__ == "__main__":
    with torch.inference_mode():
        answer(measure, Plan)
