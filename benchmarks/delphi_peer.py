"""The same pass in PyTorch: transformers' Gemma 2, the same SAE, and EleutherAI delphi's own LatentCache.

As fast as delphi goes without changes to it: the bare decoder without unembedding, no key/value cache, inference mode,
a thread a core. It runs every block, having no way to stop at the tapped one.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import torch
from delphi.latents import LatentCache
from transformers import Gemma2Model

from benchmarks.corpus_results import Passed, PassPlan, PeerPass
from benchmarks.memory import forget_peak, peak_bytes
from benchmarks.processes import answer
from benchmarks.stopwatch import timed
from benchmarks.torch_peer import DEVICES

ROWS = 16  # of a batch: the fastest on CPU, ahead of delphi's own 32


def encoder(path: Path, dtype: torch.dtype, device: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The JumpReLU encoder of a Gemma Scope file, in the model's dtype as delphi loads it."""
    with np.load(path) as arrays:
        W_enc, b_enc, threshold = (
            torch.from_numpy(arrays[name]).to(device, dtype) for name in ("W_enc", "b_enc", "threshold")
        )

    def encode(residual: torch.Tensor) -> torch.Tensor:
        pre = residual @ W_enc + b_enc
        return pre * (pre > threshold)

    return encode


def measure(plan: PassPlan) -> PeerPass:
    """Both passes of one dtype, the first of which warms up the second."""
    torch.set_num_threads(os.cpu_count() or 1)
    dtype, device = getattr(torch, plan.dtype), DEVICES[plan.platform]
    model = Gemma2Model.from_pretrained(plan.folder, dtype=dtype, local_files_only=True)
    model = cast(Gemma2Model, cast(torch.nn.Module, model).to(device).eval())
    model.config.use_cache = False
    encode = encoder(Path(plan.sae), dtype, device)
    ids = torch.from_numpy(np.load(plan.samples)).long()

    def passed(ids: torch.Tensor) -> Passed:
        forget_peak()
        latents = LatentCache(model, {f"layers.{plan.layer}": encode}, ROWS)
        _, took = timed(lambda: latents.run(ids.numel(), ids))
        peak = peak_bytes() if device == "cpu" else torch.cuda.max_memory_allocated()
        (locations,) = latents.cache.latent_locations.values()
        return Passed(ids.numel(), took, peak, int((locations[:, 1] > 0).sum()))

    passed(ids[:ROWS])  # warms up
    return PeerPass(half=passed(ids[: len(ids) // 2]), whole=passed(ids))


if __name__ == "__main__":
    with torch.inference_mode():
        answer(measure, PassPlan)
