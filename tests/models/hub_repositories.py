"""What the stand-in for the hub holds: a small checkpoint at two commits, another kind of model, an SAE release."""

import io
import json

import numpy as np
from safetensors.numpy import save

from tests.models.hub_stand_in import Repo, commit

SAE = "layer_3/width_1k/average_l0_9/params.npz"
MAIN, V1 = commit("main"), commit("v1")
VARIANTS = [(10, "65k", 20), (3, "1m", 7), (3, "1k", 141), (3, "1k", 9), (3, "16k", 71)]


def _npz(seed: int) -> bytes:
    file = io.BytesIO()
    rng = np.random.default_rng(seed)
    np.savez(file, b_enc=rng.standard_normal(1024).astype(np.float32))
    return file.getvalue()


def made_up_checkpoint(seed: int, model_type: str = "gemma2") -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    shards = {f"model-{n}.safetensors": save({f"t{n}": rng.standard_normal((512, 256))}) for n in (1, 2)}
    index = {"weight_map": {"t1": "model-1.safetensors", "t2": "model-2.safetensors"}}
    return {
        "README.md": b"not wanted",
        "pytorch_model.bin": b"not wanted",
        "original/model.safetensors": b"not wanted",
        "config.json": json.dumps({"model_type": model_type, "seed": seed}).encode(),
        "tokenizer.json": b"{}",
        "model.safetensors.index.json": json.dumps(index).encode(),
        **shards,
    }


def repositories() -> dict[str, Repo]:
    refs = {"main": MAIN, "v1": V1}
    l0s = {f"layer_{layer}/width_{width}/average_l0_{l0}/params.npz": _npz(l0) for layer, width, l0 in VARIANTS}
    return {
        "owner/model": Repo({MAIN: made_up_checkpoint(2), V1: made_up_checkpoint(1)}, refs),
        "owner/llama": Repo({MAIN: made_up_checkpoint(3, "llama")}, {"main": MAIN}),
        "owner/saes": Repo(
            {MAIN: {"README.md": b"", "embedding/params.npz": _npz(0), **l0s}, V1: {SAE: _npz(1)}}, refs
        ),
    }
