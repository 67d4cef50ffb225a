"""What is compiled while the weights are read is what the engine then runs."""

import dataclasses
from pathlib import Path

import pytest

from neuroscope_jax.config import DType, NeuroscopeConfig, Quantization
from tests.engine.collect import loaded_and_compiled
from tests.engine.test_split import write_pair


@pytest.mark.parametrize(
    ("quantization", "dtype", "contexts"),
    [("none", "bfloat16", [47]), ("int8", "float32", [47, 48])],  # made, then restored
)
def test_an_engine_starts_with_steps_that_are_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quantization: Quantization, dtype: DType, contexts: list[int]
) -> None:
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "cache"))
    write_pair(tmp_path)
    config = NeuroscopeConfig(
        model_id=str(tmp_path),
        sae_local_path=str(tmp_path / "params.npz"),
        target_layer=1,
        quantization=quantization,
        dtype=dtype,
    )
    for context in contexts:  # programs of its own
        loaded, before, at_start = loaded_and_compiled(dataclasses.replace(config, context_length=context))
        loaded.engine.close()
        assert (before, at_start) == (["prefill_step", "decode_step"], [])
