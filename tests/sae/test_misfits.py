"""An SAE that does not belong to the model, through `serve`: one line, and no port stays open."""

import json
import re
import socket

import numpy as np
import pytest

from neuroscope_jax import cli
from neuroscope_jax.config import load_preset
from neuroscope_jax.engine.load import load
from neuroscope_jax.models.hub import model_folder, sae_file

DEMO = load_preset("demo")
LAYERS, D_MODEL = (
    json.loads((model_folder("demo") / "config.json").read_text())[name]
    for name in ("num_hidden_layers", "hidden_size")
)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 5\n"


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    with np.load(sae_file(DEMO.sae_repo, DEMO.sae_path)) as found:
        return dict(found)


def _serve(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line with which `serve` ends; checks that its port is free again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert cli.run(["serve", "--port", str(port), "--features-port", "0", "--platform", "cpu", *argv]) == 1
    socket.create_server(("127.0.0.1", port)).close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def _other_model(a):
    d_in, d_sae = 3584, 64
    shapes = {"W_enc": (d_in, d_sae), "W_dec": (d_sae, d_in), "b_enc": d_sae, "b_dec": d_in, "threshold": d_sae}
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: {**a, "W_enc": a["W_enc"].T}, r"W_enc is \[2048, {d}\], expected \[{d}, 2048\] .* transposed"),
        (lambda a: {**a, "W_dec": a["W_dec"].T}, r"W_dec is \[{d}, 2048\], expected \[2048, {d}\] .* transposed"),
        (lambda a: {**a, "W_enc": a["W_enc"].T, "W_dec": a["W_dec"].T}, r"W_enc is \[2048, {d}\].* transposed"),
        (lambda a: {**a, "W_enc": a["W_enc"][:, :1024]}, r"W_enc is \[{d}, 1024\], expected \[{d}, 2048\]"),
        (lambda a: {**a, "threshold": a["threshold"][:1024]}, r"threshold is \[1024\], expected \[2048\]"),
        (lambda a: {**a, "b_dec": a["b_dec"][None]}, r"b_dec is \[1, {d}\], expected one dimension"),
        (lambda a: {**a, "b_enc": np.float32(0)}, r"b_enc is \[\], expected one dimension"),
        (_other_model, r"W_enc is \[3584, 64\].* vectors of 3584, but the model's residual stream has {d}"),
        (lambda a: {k.lower(): v for k, v in a.items()}, r"no W_enc, W_dec in it; found w_enc, w_dec"),
    ],
)
def test_shapes(capsys, tmp_path, arrays, change, said):
    file = tmp_path / "layer_3" / "params.npz"
    file.parent.mkdir()
    np.savez(file, **change(arrays))
    line = _serve(capsys, "--config", "demo", "--sae-local-path", str(file))
    assert line.startswith(str(file))
    assert re.search(said.replace("{d}", str(D_MODEL)), line)


@pytest.mark.parametrize(("layer", "name"), [(LAYERS, "the first that is not there"), (25, "of a larger model")])
def test_layers(capsys, tmp_path, arrays, layer, name):
    file = tmp_path / f"layer_{layer}" / "params.npz"
    file.parent.mkdir()
    np.savez(file, **arrays)
    line = _serve(capsys, "--config", "demo", "--sae-local-path", str(file))
    assert line.startswith(f"--sae-layer {layer}: demo has layers 0 to {LAYERS - 1}; choose the layer that the SAE")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (POINTER, "a Git LFS pointer"),
        (b"<!DOCTYPE html>", "an HTML or XML page"),
        (b"", "an empty file"),
        (b"PK\x03\x04 and then nothing", "damaged or not complete"),
    ],
)
def test_files(capsys, tmp_path, content, said):
    file = tmp_path / "layer_3.npz"
    file.write_bytes(content)
    assert said in _serve(capsys, "--config", "demo", "--sae-local-path", str(file))


@pytest.mark.parametrize(
    ("release", "hook"), [("2b-pt-att", "attention heads"), ("2b-pt-mlp", "MLPs"), ("2b-pt-transcoders", "MLPs")]
)
def test_an_sae_of_another_place_in_the_block(capsys, release, hook):
    argv = ["--sae", f"google/gemma-scope-{release}", "--sae-path", "layer_3/width_16k/average_l0_9/params.npz"]
    line = _serve(capsys, "--config", "demo", *argv)
    assert f"gemma-scope-{release} is trained on" in line
    assert hook in line


def test_labels_of_another_width_are_left_aside(caplog, tmp_path, monkeypatch):
    """The feature stream works without labels, so this is said, and serving goes on with the bundled ones."""
    caplog.set_level("INFO")
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr("neuroscope_jax.engine.load.JaxEngine.start", lambda _: None)  # nothing is generated
    file = tmp_path / "labels" / f"{DEMO.neuronpedia_model_id}_{DEMO.neuronpedia_sae_id}_neuronpedia.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"0": "zero", "2048": "one too many"}))
    loaded = load(DEMO)
    loaded.engine.close()
    said = f"labels: left aside: {file}: labels feature 2048, but this SAE has 2048 features, 0 to 2047"
    assert caplog.messages.count(said) == 1
    assert loaded.labels.source == "bundled"
