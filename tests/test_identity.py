"""Which files make another pair, and which do not."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.identity import PROBE, identify

WIDTH = 8
LARGE = 3 * PROBE  # bytes of the largest tensor that is read whole
CONFIG = NeuroscopeConfig(model_id="org/model", sae_repo="org/sae", sae_path="layer_2/params.npz", target_layer=2)
NORM, MATRIX = "model.norm.weight", "model.embed_tokens.weight"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma2", "hidden_size": 4}))
    save_file(weights(), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def sae(tmp_path):
    path = tmp_path / "params.npz"
    np.savez(path, W_enc=np.ones((4, WIDTH), np.float32), threshold=np.ones(WIDTH, np.float32))
    return path


def weights():
    return {MATRIX: np.ones((6, 4), np.float16), NORM: np.arange(4, dtype=np.float16), "a.b": np.ones(3, np.float32)}


def found(folder, sae, config=CONFIG):
    return identify(config, folder, sae, WIDTH)


def test_names_and_numbers(folder, sae):
    identity = found(folder, sae)
    assert (identity.model_id, identity.sae_id) == ("org/model", "org/sae/layer_2")
    assert (identity.width, identity.layer) == (WIDTH, 2)
    assert len(identity.model_sha256) == len(identity.sae_sha256) == 64
    assert identity == found(folder, sae)


def test_a_copy_elsewhere_is_the_same(folder, sae, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    (copied / "config.json").write_text('{"hidden_size": 4, "transformers_version": "9", "model_type": "gemma2"}')
    renamed = shutil.copy(sae, tmp_path / "other.npz")
    elsewhere = found(copied, renamed, dataclasses.replace(CONFIG, model_id=str(copied), sae_local_path=str(renamed)))
    assert not found(folder, sae).misfits(elsewhere)


def test_shards_are_the_same_model(folder, sae, tmp_path):
    whole, sharded = found(folder, sae), tmp_path / "sharded"
    sharded.mkdir()
    shutil.copy(folder / "config.json", sharded)
    tensors = load_file(folder / "model.safetensors")
    names = {key: f"model-{i}.safetensors" for i, key in enumerate(tensors)}
    for key, name in names.items():
        save_file({key: tensors[key]}, sharded / name)
    (sharded / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    assert found(sharded, sae) == whole


@pytest.mark.parametrize(
    "changed",
    [
        {NORM: np.float16([0, 1, 2, 3.002])},
        {NORM: np.arange(4, dtype=np.float32)},
        {MATRIX: np.ones((7, 4), np.float16)},
        {"lm_head.weight": np.ones((6, 4), np.float16)},
    ],
    ids=["a norm", "a type", "a shape", "one more tensor"],
)
def test_other_weights_are_another_model(folder, sae, changed):
    before = found(folder, sae)
    save_file({**weights(), **changed}, folder / "model.safetensors", metadata={"format": "pt"})
    (misfit,) = before.misfits(found(folder, sae))
    assert misfit.startswith("another model (org/model, sha256 ")


def test_another_config_is_another_model(folder, sae):
    before = found(folder, sae)
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma2", "hidden_size": 4, "rope_theta": 1.0}))
    assert len(before.misfits(found(folder, sae))) == 1


def test_one_other_weight_is_another_sae(folder, sae):
    before = found(folder, sae)
    threshold = np.ones(WIDTH, np.float32)
    threshold[3] = 1.0000001
    np.savez(sae, W_enc=np.ones((4, WIDTH), np.float32), threshold=threshold)
    (misfit,) = before.misfits(found(folder, sae))
    assert misfit.startswith("another SAE (org/sae/layer_2, sha256 ")


def test_every_difference_is_told(folder, sae):
    identity = found(folder, sae)
    other = dataclasses.replace(identity, model_sha256="0" * 64, sae_sha256="1" * 64, width=9, layer=3)
    kinds = [misfit.split()[1] for misfit in identity.misfits(other)]
    assert kinds == ["model", "SAE", "width", "layer"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"<html>", "an HTML or XML page"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
        (b"\x10\0\0\0\0\0\0\0[1, 2]          ", "damaged"),
        (b"\xff" * 40, "damaged"),
        (b"\x02\0\0\0\0\0\0\0{", "damaged"),
        (b'\x0e\0\0\0\0\0\0\0{"a":{"b": 1}}', "damaged"),
        (b'\x0e\0\0\0\0\0\0\0\xff\xfe":{"b": 1}}', "damaged"),
    ],
)
def test_broken_files_are_named(folder, sae, content, said):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=rf"model\.safetensors: {said}|model\.safetensors: .*{said}"):
        found(folder, sae)
    sae.write_bytes(content)
    save_file(weights(), folder / "model.safetensors")
    with pytest.raises(UserError, match=rf"params\.npz: .*{said}.*expected an \.npz archive"):
        found(folder, sae)


def test_absent_files_are_named(folder, sae, tmp_path):
    with pytest.raises(UserError, match=r"gone\.npz: no such SAE file"):
        found(folder, tmp_path / "gone.npz")
    with pytest.raises(UserError, match=r"params\.npz: a folder|npz: a folder"):
        (tmp_path / "folder.npz").mkdir()
        found(folder, tmp_path / "folder.npz")
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: .*No such file"):
        found(folder, sae)
    (folder / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json: cannot be read"):
        found(folder, sae)


@pytest.mark.parametrize("at", [0, LARGE // 2, 2 * LARGE - 1], ids=["start", "middle", "end"])
def test_a_patched_matrix_makes_another_model(folder, sae, at):
    large = {**weights(), "large": np.zeros((2, LARGE // 2), np.float16)}
    save_file(large, folder / "model.safetensors")
    before = found(folder, sae)
    large["large"].reshape(-1)[min(at, LARGE - 1)] = 1
    save_file(large, folder / "model.safetensors")
    assert found(folder, sae).model_sha256 != before.model_sha256
