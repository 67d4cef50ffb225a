"""Which module runs which checkpoint: one line a model family."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import flax.linen as nn
from jax.typing import DTypeLike

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config

# config.json's model_type → (reader of config.json, module)
FAMILIES: dict[str, tuple[Callable[[Mapping[str, Any]], Any], type[nn.Module]]] = {
    "gemma2": (Gemma2Config.from_hf, Gemma2),
}


def read_config(folder: Path) -> dict[str, Any]:
    """The parsed config.json of a checkpoint folder. Raises UserError where it is absent or not JSON."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; a checkpoint in Hugging Face layout has one") from error
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON: {error}; fetch the file again") from error
    if not isinstance(config, dict):
        raise UserError(f"{path}: holds a {type(config).__name__}, expected an object of fields")
    return config


def build_model(config: Mapping[str, Any], dtype: DTypeLike) -> nn.Module:
    """The module for a config.json, its weights and activations in `dtype`. Raises UserError for an unknown family."""
    family = config.get("model_type")
    if family not in FAMILIES:
        raise UserError(f"config.json: model_type is {family!r}; supported families: {', '.join(sorted(FAMILIES))}")
    read, module = FAMILIES[family]
    return module(config=read(config), dtype=dtype)
