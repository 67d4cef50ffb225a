"""config.json to module."""

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.registry import build_model, read_config


def test_gemma2_is_built_with_its_figures(config_json: dict[str, Any]) -> None:
    model = build_model(config_json, jnp.bfloat16)
    assert isinstance(model, Gemma2)
    assert model.dtype == jnp.bfloat16
    assert (model.config.num_hidden_layers, model.config.query_pre_attn_scalar) == (2, 8.0)


@pytest.mark.parametrize("family", ["llama", "", None, ["gemma2"]])
def test_unknown_family_lists_the_known(config_json: dict[str, Any], family: str | None) -> None:
    with pytest.raises(UserError, match=f"model_type is {re.escape(repr(family))}.*gemma2"):
        build_model({**config_json, "model_type": family}, jnp.float32)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": None, "head_dim": None}, "missing hidden_size, head_dim"),
        ({"hidden_size": "many"}, "hidden_size"),
        ({"hidden_size": 0}, "hidden_size is 0; expected a positive number"),
        ({"vocab_size": 10**12}, "vocab_size is 1000000000000"),
        ({"sliding_window": -5}, "sliding_window is -5"),
        ({"final_logit_softcapping": 0}, "final_logit_softcapping is 0"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
        ({"rope_theta": 0}, "rope_theta is 0"),
        ({"num_attention_heads": 4, "num_key_value_heads": 3}, "4 heads and 3 key/value heads"),
        ({"head_dim": 7}, "the size even"),
        ({"hidden_activation": "relu"}, "hidden_activation is 'relu'"),
        ({"hidden_activation": "gelu"}, "hidden_activation is 'gelu'"),
        ({"layer_types": ["full_attention"] * 4}, "layer_types are not Gemma 2's"),
    ],
)
def test_fields_at_fault_are_named(config_json: dict[str, Any], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        build_model({**config_json, **changes}, jnp.float32)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling {'type': 'linear', 'factor': 2}"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 10_000.0}}, "rope_type 'yarn'"),
        ({"quantization_config": {"bits": 4}}, "quantization_config {'bits': 4}"),
        ({"attention_bias": True}, "attention_bias True"),
    ],
)
def test_other_arithmetic_is_refused(config_json: dict[str, Any], asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        build_model({**config_json, **asked}, jnp.float32)
    usual = {
        "rope_scaling": {"rope_type": "default"},
        "quantization_config": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
    }
    build_model({**config_json, **usual, "attention_bias": False}, jnp.float32)


@pytest.mark.parametrize(
    ("text", "said"), [(None, "No such file"), ("<html>", "not valid JSON"), ("[1]", "Expected `object`, got `array`")]
)
def test_config_files_that_are_none(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=f"config.json.*{said}"):
        read_config(tmp_path)
