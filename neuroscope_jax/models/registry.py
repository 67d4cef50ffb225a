"""Which module runs which checkpoint: one line a model family.

What a family must offer, as a `flax.linen` module with fields `config` and `dtype` (gemma2.py is the example):

- `__call__(ids, positions, cache) -> (residual after the last block, cache)`; blocks are named layers_0, layers_1, …
  and each sows its output under ("intermediates", "resid_post");
- `logits(residual)` in float32; its linear part is `final_gain(params)` times the parameter named by `UNEMBEDDING`;
- `scores(ids, positions)`, which touches every parameter, and `empty_cache(batch, length)`;
- parameters under Hugging Face's names and layouts, multiplied through `layers.matmul` only; how they are split over
  several devices goes by those names (`sharding.py`);
- a config with vocab_size, hidden_size, num_hidden_layers, num_key_value_heads and max_position_embeddings.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import flax.linen as nn
from jax.typing import DTypeLike

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json
from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config

# config.json's model_type → (reader of config.json, module)
FAMILIES: dict[str, tuple[Callable[[Mapping[str, Any]], Any], type[nn.Module]]] = {
    "gemma2": (Gemma2Config.from_hf, Gemma2),
}


def read_config(folder: Path) -> dict[str, Any]:
    """The parsed config.json of a checkpoint folder. Raises UserError where it is absent or no JSON object."""
    fields: dict[str, Any] = read_json(folder / "config.json", dict)
    return fields


def build_model(config: Mapping[str, Any], dtype: DTypeLike) -> nn.Module:
    """The module for a config.json, its weights and activations in `dtype`. Raises UserError for an unknown family."""
    unknown = unknown_family(config)
    if unknown:
        raise UserError(unknown)
    read, module = FAMILIES[config["model_type"]]
    return module(config=read(config), dtype=dtype)


def unknown_family(config: Mapping[str, Any]) -> str | None:
    """What a config.json says that no module here can run, in words; None where one can."""
    family = config.get("model_type")
    if isinstance(family, str) and family in FAMILIES:
        return None
    return f"config.json: model_type is {family!r}; supported families: {', '.join(sorted(FAMILIES))}"


def first_blocks(model: nn.Module, count: int) -> nn.Module:
    """`model` cut after its first `count` blocks: what it returns is the residual stream there."""
    return model.clone(config=dataclasses.replace(model.config, num_hidden_layers=count))
