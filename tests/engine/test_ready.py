"""What is compiled while the weights are read is what the engine then runs."""

import dataclasses
from pathlib import Path

import pytest

from neuroscope_jax.config import DType, NeuroscopeConfig, Quantization
from neuroscope_jax.engine.load import load
from tests.engine.collect import steps_compiled
from tests.engine.test_split import write_pair


@pytest.mark.parametrize(
    ("quantization", "dtype", "contexts"),
    [("none", "bfloat16", [47]), ("int8", "float32", [47, 48])],  # made, then restored
)
def test_no_step_is_compiled_twice(
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
        with steps_compiled() as names:
            load(dataclasses.replace(config, context_length=context)).engine.close()
        assert names == ["prefill_step", "decode_step"]
