"""Quantised weights kept for the next start: from where they come, and what must make them anew."""

import dataclasses
import json
import logging
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from neuroscope_jax import files
from neuroscope_jax.models import weights
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.quantized import QuantizedWeight, dequantize
from neuroscope_jax.models.quantized_cache import served_weights
from neuroscope_jax.models.weights import expected_shapes
from tests.models.conftest import TINY

VOCAB = 2048  # so that the embedding is larger than what an identity looks at
CONFIG = dataclasses.replace(TINY, vocab_size=VOCAB)
MODEL = Gemma2(CONFIG)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint in bfloat16, and an empty cache."""
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "checkpoint"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"model_type": "gemma2", **dataclasses.asdict(CONFIG)}))
    rng = np.random.default_rng(0)
    shapes = expected_shapes(MODEL)
    tensors = {key: rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for key, shape in shapes.items()}
    save_file(tensors, made / "model.safetensors")
    return made


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def the_cache(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache" / "quantized").iterdir()
    return found


def overwrite(folder: Path, keep_time: bool) -> None:
    """Other numbers in the middle of the embedding, where no identity looks."""
    path = folder / "model.safetensors"
    before = path.stat()
    data = bytearray(path.read_bytes())
    table = load_file(path)["model.embed_tokens.weight"].tobytes()
    at = data.index(table) + len(table) // 4
    data[at : at + 64] = bytes(64)
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + (0 if keep_time else 1_000_000)))


def same(a: Any, b: Any) -> bool:
    return jax.tree.structure(a) == jax.tree.structure(b) and all(
        x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_the_second_start_takes_what_the_first_made(
    folder: Path, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a look at the tensors: they are changed meanwhile behind the cache's back."""
    first = served_weights(folder, MODEL, kind)
    assert "made, kept in" in caplog.text
    overwrite(folder, keep_time=True)
    caplog.clear()
    assert same(served_weights(folder, MODEL, kind), first)
    assert f"restored from {the_cache(tmp_path)}" in caplog.text


def test_every_matrix_is_quantised_and_norms_are_not(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    params = served_weights(folder, MODEL, "int8")
    table, norm = params["embed_tokens"]["weight"], params["norm"]["weight"]
    assert isinstance(table, QuantizedWeight)
    assert isinstance(params["layers_1"]["mlp"]["down_proj"]["weight"], QuantizedWeight)
    error = np.abs(np.asarray(dequantize(table)) - stored["model.embed_tokens.weight"].astype(np.float32))
    assert np.all(error <= np.asarray(table.scales)[:, None] * 0.5001)
    np.testing.assert_array_equal(norm, stored["model.norm.weight"].astype(np.float32))


def test_norms_are_in_the_models_dtype_from_either_source(folder: Path) -> None:
    served_weights(folder, MODEL, "int8")
    restored = served_weights(folder, Gemma2(CONFIG, jnp.bfloat16), "int8")
    assert restored["norm"]["weight"].dtype == jnp.bfloat16


def test_a_changed_checkpoint_is_quantised_anew(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = served_weights(folder, MODEL, "int8")
    overwrite(folder, keep_time=False)
    assert not same(served_weights(folder, MODEL, "int8"), first)
    assert "of other files than the checkpoint's now: made anew" in caplog.text
    assert the_cache(tmp_path)  # one only


@pytest.mark.parametrize("where", ["source.json", "weights"])
def test_a_damaged_cache_is_made_anew(
    folder: Path, tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = served_weights(folder, MODEL, "int8")
    place = the_cache(tmp_path) / where
    for path in [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert same(served_weights(folder, MODEL, "int8"), first)
    assert "made anew" in caplog.text
    caplog.clear()
    served_weights(folder, MODEL, "int8")
    assert "restored from" in caplog.text


def test_a_start_that_is_killed_leaves_nothing_that_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "_to_disk", die)  # all is written, and not yet in its place
        patch.setattr(files.shutil, "rmtree", lambda *_, **__: None)  # a kill cleans nothing up
        with pytest.raises(KeyboardInterrupt):
            served_weights(folder, MODEL, "int8")
    part = the_cache(tmp_path)
    assert part.name.endswith(".part")
    part.rename(part.with_name(part.name.replace(str(os.getpid()), str(2**22 + 1))))  # of a process that is no more
    served_weights(folder, MODEL, "int8")
    assert not the_cache(tmp_path).name.endswith(".part")


def test_a_cache_that_cannot_be_written_is_done_without(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert served_weights(folder, MODEL, "int8")
    assert "cannot be written" in caplog.text


def test_no_second_copy_of_the_model_is_held(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a tensor is read by a single reader, of those before it there is nothing left but 8 bits."""

    def wide() -> int:
        return sum(a.nbytes for a in jax.live_arrays() if a.ndim == 2 and a.dtype != jnp.int8)

    def counting(*given: Any) -> jax.Array:
        seen.append(wide())
        return read(*given)

    seen: list[int] = []
    read, before = weights._read, wide()
    monkeypatch.setattr(weights, "_read", counting)
    monkeypatch.setattr(weights, "READERS", 1)
    served_weights(folder, MODEL, "int8")
    assert len(seen) > 10
    assert max(seen) <= before
