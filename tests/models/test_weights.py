"""Checkpoints to parameter trees: bits, shards, and what is said of files that do not fit."""

import dataclasses
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.weights import (
    READERS,
    expected_shapes,
    load_unembedding,
    load_weights,
    may_be_compact,
    save_weights,
)
from neuroscope_jax.native import kernels

Tiny = tuple[Gemma2, dict[str, Any]]
UP = "model.layers.1.mlp.up_proj.weight"


@pytest.fixture
def tensors(tiny: Tiny) -> dict[str, np.ndarray]:
    """The tiny checkpoint by Hugging Face names, written out by hand."""
    blocks = tiny[1]
    found = {
        "model.embed_tokens.weight": blocks["embed_tokens"]["weight"],
        "model.norm.weight": blocks["norm"]["weight"],
    }
    for i in (0, 1):
        for path, leaf in flax.traverse_util.flatten_dict(blocks[f"layers_{i}"], sep=".").items():
            found[f"model.layers.{i}.{path}"] = leaf
    return {key: np.asarray(leaf) for key, leaf in found.items()}


@pytest.fixture
def folder(tmp_path: Path, config_json: dict[str, Any]) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(config_json))
    return tmp_path


def assert_same(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_single_file(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    save_file(tensors, folder / "model.safetensors")
    assert_same(load_weights(folder, tiny[0], jnp.float32), tiny[1])


def test_save_weights_writes_what_load_weights_reads(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    save_weights(tiny[1], folder / "model.safetensors")
    with safe_open(folder / "model.safetensors", "np") as file:
        assert set(file.keys()) == set(tensors)
        assert file.metadata() == {"format": "pt"}  # transformers refuses a file without it
    assert_same(load_weights(folder, tiny[0], jnp.float32), tiny[1])
    save_weights(tiny[1], folder / "model.safetensors", jnp.bfloat16)
    expected = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), tiny[1])
    assert_same(load_weights(folder, Gemma2(tiny[0].config, jnp.bfloat16), jnp.bfloat16), expected)


def test_shards_with_an_index(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    write_shards(folder, tensors)
    assert_same(load_weights(folder, tiny[0], jnp.float32), tiny[1])


def write_shards(folder: Path, tensors: dict[str, np.ndarray]) -> None:
    index = {}
    for i, part in enumerate((sorted(tensors)[::2], sorted(tensors)[1::2])):
        name = f"model-{i + 1:05}-of-00002.safetensors"
        save_file({key: tensors[key] for key in part}, folder / name)
        index |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def test_bfloat16_keeps_every_bit(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    """All 65,536 patterns occur in Gemma-sized files; here as many as fit: subnormals, -0, infinities, NaN payloads."""
    bits = np.linspace(0, 65535, tensors[UP].size, dtype=np.uint16).reshape(tensors[UP].shape)
    rest = {key: value.astype(ml_dtypes.bfloat16) for key, value in tensors.items()}
    save_file({**rest, UP: bits.view(ml_dtypes.bfloat16)}, folder / "model.safetensors")
    params = load_weights(folder, Gemma2(tiny[0].config, jnp.bfloat16), jnp.bfloat16)
    found = np.asarray(params["layers_1"]["mlp"]["up_proj"]["weight"])
    np.testing.assert_array_equal(found.view(np.uint16), bits)


@pytest.mark.parametrize("stored", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_other_types_are_cast(
    folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray], stored: Any, dtype: Any
) -> None:
    there = {key: value.astype(stored) for key, value in tensors.items()}
    save_file(there, folder / "model.safetensors")
    params = load_weights(folder, Gemma2(tiny[0].config, dtype), dtype)
    found = params["layers_1"]["mlp"]["up_proj"]["weight"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found), there[UP].astype(dtype))


def test_compact_weights_stay_bfloat16_and_the_model_computes_the_same(
    folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No other test's programs, which would be used again.
    model, ids = Gemma2(dataclasses.replace(tiny[0].config, rope_theta=9_000.0)), jnp.array([[5, 6, 7, 8]])
    save_file({key: value.astype(ml_dtypes.bfloat16) for key, value in tensors.items()}, folder / "model.safetensors")
    monkeypatch.setattr(kernels, "available", lambda *_: True)
    assert may_be_compact(folder)
    monkeypatch.setattr(kernels, "available", lambda *_: False)  # XLA's products, which are the same for both
    assert not may_be_compact(folder)
    whole = load_weights(folder, model, jnp.float32)
    compact = load_weights(folder, model, jnp.float32, compact=True)
    assert {leaf.dtype for leaf in jax.tree.leaves(compact)} == {jnp.dtype(jnp.bfloat16)}
    found, expected = (
        model.apply({"params": params}, ids, jnp.arange(4)[None], method="scores") for params in (compact, whole)
    )
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("tiles", [True, False])
def test_weights_stay_compact_for_many_rows_where_these_go_in_tiles(
    folder: Path, tensors: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch, tiles: bool
) -> None:
    save_file({key: value.astype(ml_dtypes.bfloat16) for key, value in tensors.items()}, folder / "model.safetensors")
    monkeypatch.setattr(kernels, "available", lambda *_: True)
    monkeypatch.setattr(kernels, "in_tiles", lambda *_: tiles)
    assert may_be_compact(folder, rows=2048) is tiles


def test_a_pipe_is_not_waited_for(folder: Path, tiny: Tiny) -> None:
    (folder / "model.safetensors").unlink(missing_ok=True)
    os.mkfifo(folder / "model.safetensors")
    with pytest.raises(UserError, match="a pipe or a device, expected safetensors"):
        load_weights(folder, tiny[0], jnp.float32)


def test_a_checkpoint_of_mixed_types_is_not_compact(
    folder: Path, tensors: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "available", lambda *_: True)
    save_file({**tensors, UP: tensors[UP].astype(ml_dtypes.bfloat16)}, folder / "model.safetensors")
    assert not may_be_compact(folder)


def test_a_few_tensors_at_a_time_are_in_host_memory(folder: Path, tiny: Tiny) -> None:
    """What is cast has buffers of JAX's, not Python's: what tracemalloc sees is what was read and not yet freed."""
    config = dataclasses.replace(tiny[0].config, hidden_size=1024, intermediate_size=1024, num_hidden_layers=8)
    model = Gemma2(config)
    params = {path: jnp.zeros(shape, jnp.float16) for path, shape in expected_shapes(model).items()}
    total = sum(leaf.nbytes for leaf in params.values())
    save_file({key: np.asarray(leaf) for key, leaf in params.items()}, folder / "model.safetensors")
    tracemalloc.start()
    load_weights(folder, model, jnp.float32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    largest = max(leaf.nbytes for leaf in params.values())
    assert largest < peak < 2.5 * READERS * largest < total / 2  # some are freed a little later


def test_tied_output_matrix_is_ignored_and_an_untied_one_named(
    folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray], config_json: dict[str, Any]
) -> None:
    save_file({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"]}, folder / "model.safetensors")
    assert_same(load_weights(folder, tiny[0], jnp.float32), tiny[1])
    (folder / "config.json").write_text(json.dumps({**config_json, "tie_word_embeddings": False}))
    with pytest.raises(UserError, match="1 unmatched: lm_head.weight"):
        load_weights(folder, tiny[0], jnp.float32)


def test_every_misfit_is_told_in_one_message(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    del tensors["model.norm.weight"], tensors["model.layers.0.input_layernorm.weight"]
    tensors[UP] = tensors[UP].T.copy()
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].astype(np.int8)
    tensors |= {f"model.layers.{i}.self_attn.q_norm.weight": np.zeros(8, np.float32) for i in range(5)}
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(UserError) as caught:
        load_weights(folder, tiny[0], jnp.float32)
    said = str(caught.value)
    assert "2 missing: model.layers.0.input_layernorm.weight, model.norm.weight" in said
    assert "5 unmatched: model.layers.0.self_attn.q_norm.weight" in said
    assert "layers.4.self_attn" not in said
    assert f"1 of a wrong shape: {UP} (16, 32), expected (32, 16)" in said
    assert "model.embed_tokens.weight I8" in said


def test_keys_without_the_prefix_are_told_as_such(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    save_file({key.removeprefix("model."): value for key, value in tensors.items()}, folder / "model.safetensors")
    with pytest.raises(UserError, match=r"missing.*unmatched.*lack the prefix 'model\.'"):
        load_weights(folder, tiny[0], jnp.float32)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "an HTML or XML page"),
        (b"\x80\x02}q\x00.", "damaged or not complete"),
    ],
)
def test_files_that_are_something_else(folder: Path, tiny: Tiny, content: bytes, said: str) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=rf"model\.safetensors: {said}.*fetch it again"):
        load_weights(folder, tiny[0], jnp.float32)


@pytest.mark.parametrize("kept", [9, 300, -1])
def test_truncated_file(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray], kept: int) -> None:
    path = folder / "model.safetensors"
    save_file(tensors, path)
    path.write_bytes(path.read_bytes()[:kept])
    size = f"{path.stat().st_size:,}"
    with pytest.raises(UserError, match=rf"damaged or not complete \({size} bytes.*expected safetensors"):
        load_weights(folder, tiny[0], jnp.float32)


def test_shards_that_are_absent_or_of_two_checkpoints(folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]) -> None:
    write_shards(folder, tensors)
    second = folder / "model-00002-of-00002.safetensors"
    save_file(tensors, second)
    with pytest.raises(UserError, match="is also in model-00001"):
        load_weights(folder, tiny[0], jnp.float32)
    second.unlink()
    with pytest.raises(UserError, match="1 of 2 shards are missing: model-00002"):
        load_weights(folder, tiny[0], jnp.float32)
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(UserError, match="required field `weight_map`"):
        load_weights(folder, tiny[0], jnp.float32)


def test_other_weight_formats_are_named(folder: Path, tiny: Tiny) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(UserError, match=r"found pytorch_model\.bin.*safetensors only"):
        load_weights(folder, tiny[0], jnp.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_unembedding_alone_comes_in_blocks_of_rows(
    folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray], dtype: Any, size: int
) -> None:
    there = {key: value.astype(dtype) for key, value in tensors.items()}
    write_shards(folder, there)
    params, table = load_unembedding(folder, tiny[0])
    assert list(params) == ["norm"]
    np.testing.assert_array_equal(tiny[0].final_gain(params), 1 + there["model.norm.weight"].astype(np.float32))
    blocks = list(table.blocks(size))
    assert {block.dtype for block in blocks} == {np.dtype(dtype)}
    assert max(map(len, blocks)) <= size
    np.testing.assert_array_equal(np.concatenate(blocks), there["model.embed_tokens.weight"])
    assert table.shape == there["model.embed_tokens.weight"].shape


def test_the_unembedding_of_an_unfit_checkpoint_is_refused(
    folder: Path, tiny: Tiny, tensors: dict[str, np.ndarray]
) -> None:
    save_file({key: value for key, value in tensors.items() if key != UP}, folder / "model.safetensors")
    with pytest.raises(UserError, match=f"1 missing: {UP}"):
        load_unembedding(folder, tiny[0])
