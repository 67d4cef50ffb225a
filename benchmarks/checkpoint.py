"""A random checkpoint and SAE in the layouts of the real ones, made once and kept in the cache folder."""

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

from benchmarks.shapes import Shape
from neuroscope_jax.config import cache_folder
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.hub_cache import INDEX
from neuroscope_jax.models.weights import expected_shapes

SEED = 20
RECIPE = 1  # part of the folder's name: count up where other weights come out
ROWS = 8192  # drawn at once, so that no float32 copy of a whole tensor is held
PROJECTION_SCALE = 0.02
# Small enough that the tied unembedding does not simply name the input token again.
EMBEDDING_SCALE = 0.5


def checkpoint(shape: Shape) -> Path:
    """The folder of a shape: config.json, bfloat16 shards with their index, and params.npz. Made where absent.

    Shards that an interrupted run has finished are kept; the folder gets its name when it is complete.
    """
    folder = cache_folder() / "benchmarks" / f"{shape.name}-random-{RECIPE}"
    if folder.is_dir():
        return folder
    unfinished = folder.with_name(folder.name + ".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    _write_shards(unfinished, shape)
    (unfinished / "config.json").write_text(json.dumps(hf_config(shape), indent=2), encoding="utf-8")
    _write_sae(sae_file(unfinished), shape)
    return unfinished.rename(folder)


def sae_file(folder: Path) -> Path:
    """Where the SAE of a checkpoint folder lies."""
    return folder / "params.npz"


def hf_config(shape: Shape) -> dict[str, Any]:
    """The config.json that transformers and this project read."""
    return {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": "gemma2",
        "torch_dtype": "bfloat16",
        "hidden_activation": "gelu_pytorch_tanh",
        "tie_word_embeddings": True,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "pad_token_id": 0,
        **dataclasses.asdict(shape.model),
    }


def _write_shards(folder: Path, shape: Shape) -> None:
    """One shard a layer and one for the rest, then the index."""
    shards = _shards(expected_shapes(Gemma2(shape.model)))
    weight_map: dict[str, str] = {}
    for number, shapes in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        weight_map |= dict.fromkeys(shapes, name)
        if not (folder / name).exists():
            tensors = {key: _tensor(key, size) for key, size in shapes.items()}
            aside = folder / (name + ".unfinished")
            save_file(tensors, aside, metadata={"format": "pt"})
            aside.rename(folder / name)
    total = sum(2 * math.prod(size) for shapes in shards for size in shapes.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")


def _shards(shapes: Mapping[str, tuple[int, ...]]) -> list[dict[str, tuple[int, ...]]]:
    """Tensors by layer, in order of the layers; those of none come first."""
    by_layer: dict[int, dict[str, tuple[int, ...]]] = {}
    for key, size in shapes.items():
        layer = int(key.split(".")[2]) if key.startswith("model.layers.") else -1
        by_layer.setdefault(layer, {})[key] = size
    return [by_layer[layer] for layer in sorted(by_layer)]


def _tensor(key: str, size: tuple[int, ...]) -> np.ndarray:
    """Normal bfloat16 numbers that depend on the key alone."""
    random = np.random.default_rng([SEED, *key.encode()])
    scale = EMBEDDING_SCALE / math.sqrt(size[-1]) if "embed_tokens" in key else PROJECTION_SCALE
    tensor = np.empty(size, jnp.bfloat16)
    for start in range(0, size[0], ROWS):
        rows = tensor[start : start + ROWS]
        rows[:] = np.float32(scale) * random.standard_normal(rows.shape, np.float32)
    return tensor


def _write_sae(path: Path, shape: Shape) -> None:
    """Directions of about unit length, and the threshold that `average_l0` of them pass."""
    random = np.random.default_rng([SEED, shape.d_sae])
    encoder = random.standard_normal((shape.model.hidden_size, shape.d_sae), np.float32)
    encoder /= np.float32(math.sqrt(shape.model.hidden_size))
    with path.open("wb") as file:
        np.savez(
            file,
            W_enc=encoder,
            W_dec=np.ascontiguousarray(encoder.T),
            b_enc=np.zeros(shape.d_sae, np.float32),
            b_dec=np.zeros(shape.model.hidden_size, np.float32),
            threshold=np.full(shape.d_sae, _threshold(shape), np.float32),
        )


def _threshold(shape: Shape) -> float:
    """A random direction reads a normal number as wide as the residual: the embedding, and two unit sums a block."""
    width = math.sqrt(EMBEDDING_SCALE**2 + 2 * (shape.layer + 1))
    return width * statistics.NormalDist().inv_cdf(1 - shape.average_l0 / shape.d_sae)
