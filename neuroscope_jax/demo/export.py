"""Write the trained pair in the file formats of Hugging Face and Gemma Scope."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from neuroscope_jax.demo.tokenizer import BOS, END_OF_TURN, EOS, PAD
from neuroscope_jax.models.gemma2 import Gemma2Config
from neuroscope_jax.models.weights import Params, save_weights


def write_model(folder: Path, config: Gemma2Config, params: Params) -> None:
    """config.json, generation_config.json and model.safetensors in bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": "gemma2",
        **dataclasses.asdict(config),
        "query_pre_attn_scalar": int(config.query_pre_attn_scalar),
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "cache_implementation": "hybrid",
        "initializer_range": 0.02,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
    }
    write_json(folder / "config.json", described)
    generation = {
        "bos_token_id": BOS,
        "eos_token_id": [EOS, END_OF_TURN],
        "pad_token_id": PAD,
        "cache_implementation": "hybrid",
        "do_sample": True,
        "temperature": 0.2,  # so small a model is only sure of its likeliest words
    }
    write_json(folder / "generation_config.json", generation)
    save_weights(params, folder / "model.safetensors", jnp.bfloat16)


def write_sae(folder: Path, arrays: Mapping[str, Any]) -> None:
    """params.npz, not compressed, as the Gemma Scope releases are."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "params.npz", **arrays)


def write_json(path: Path, value: object) -> None:
    """Indented JSON with a final newline."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
