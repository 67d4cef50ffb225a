"""Statistics on disk: exact there and back, and refused where they are another pair's or cannot be."""

import dataclasses
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.corpus.collected import collect
from neuroscope_jax.corpus.state import Batch, CorpusState, with_batch
from neuroscope_jax.errors import UserError
from neuroscope_jax.features import calibration
from neuroscope_jax.features.calibration import (
    HISTOGRAM_EDGES,
    FeatureStats,
    cached_stats_path,
    load_stats,
    read_stats,
    save_stats,
    stats_path,
)
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from tests.features.measured import PAIR, PROVENANCE, WIDTH, activations, measured


@pytest.fixture
def stats() -> FeatureStats:
    return measured(activations())


@pytest.fixture
def saved(tmp_path, stats):
    path = tmp_path / "folder" / "stats.json"
    save_stats(path, stats, PROVENANCE)
    return path


def test_calibration_computes_firing_rates():
    """100 inputs through a small SAE: rates are fractions, and add up to the number of features active at once."""
    rows = jax.random.normal(jax.random.key(0), (WIDTH, 16))
    sae = SparseAutoencoder(rows, jnp.zeros(WIDTH), jnp.full(WIDTH, 3.0), jnp.float32(1))
    found = np.asarray(sae.encode(jax.random.normal(jax.random.key(1), (100, 16))))
    four = jnp.arange(4, dtype=jnp.int32)
    batch = Batch(jnp.zeros((4, 25), jnp.int32), jnp.ones((4, 25), bool), four, 0 * four, 0 * four - 1, 0 * four)
    state = with_batch(CorpusState.empty(WIDTH), jnp.asarray(found).reshape(4, 25, WIDTH), batch, seed=0)
    stats = collect(jax.tree.map(lambda x: x[None], state)).stats()
    l0 = np.mean([np.count_nonzero(token) for token in found])
    assert 0 < l0 < WIDTH
    assert np.all((stats.firing_rate >= 0) & (stats.firing_rate <= 1))
    assert stats.firing_rate.sum() == pytest.approx(l0)
    assert stats.l0 == pytest.approx(l0)
    assert stats.count.mean() == pytest.approx(l0 * len(found) / WIDTH)


def test_calibration_persistence(saved, stats):
    loaded, provenance = load_stats(saved, PAIR)
    assert provenance == PROVENANCE
    for field in dataclasses.fields(FeatureStats):
        wanted, found = getattr(stats, field.name), getattr(loaded, field.name)
        assert np.array_equal(found, wanted)
        assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None)


def test_the_file_says_what_the_specification_asks_for(saved, stats):
    content = json.loads(saved.read_text(), parse_constant=pytest.fail)
    assert content["tokens"] == stats.tokens
    assert content["l0"] == pytest.approx(np.count_nonzero(activations()) / stats.tokens)
    assert content["firing_rate"] == (stats.count / stats.tokens).tolist()
    for name in ("mean_activation", "activation_variance", "max_activation"):
        assert [value is None for value in content[name]] == (stats.count == 0).tolist()
        assert content[name][1:] == getattr(stats, name)[1:].tolist()


def test_bins_cover_what_jump_relu_gives():
    """The bin in words and the bin by the edges are the same, on the edges too, which are float32 everywhere."""
    assert HISTOGRAM_EDGES.dtype == np.float32
    assert len(HISTOGRAM_EDGES) == calibration.BINS - 1
    octaves = np.exp2(np.arange(-3, 13)).astype(np.float32)
    assert np.array_equal(HISTOGRAM_EDGES[::2], octaves)
    for activation, bin_ in ((0.01, 0), (0.125, 1), (0.5, 5), (1, 7), (1.5, 8), (2000, 28), (4095, 30), (4096, 31)):
        assert np.searchsorted(HISTOGRAM_EDGES, np.float32(activation), side="right") == bin_


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"model_sha256": "9" * 64},
            r"another model \(org/model-it, sha256 a{8}…; in use is org/other, sha256 9{8}…\)",
        ),
        (
            {"sae_sha256": "9" * 64},
            r"another SAE \(org/sae/layer_3/width_48/average_l0_12, sha256 b{8}…; in use is org/",
        ),
        ({"width": 64}, r"another width \(48; in use is 64\)"),
        ({"layer": 4}, r"another layer \(3; in use is 4\)"),
    ],
)
def test_statistics_of_another_pair_are_refused(saved, changed, said):
    with pytest.raises(UserError, match=said) as refusal:
        load_stats(saved, dataclasses.replace(PAIR, model_id="org/other", **changed))
    assert str(refusal.value).startswith(f"{saved}: ")
    assert str(refusal.value).count("in use is") == 1


def test_the_same_files_under_another_name_are_the_same_pair(saved):
    load_stats(saved, dataclasses.replace(PAIR, model_id="/elsewhere/model", sae_id="/elsewhere/params.npz"))


def with_entry(name, index, value):
    def change(content):
        content[name][index] = value

    return change


def with_field(name, value):
    return lambda content: content.update({name: value})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_field("count", [1]), "count has 1 entries, expected 48"),
        (with_field("mean_activation", [1.0] * 49), "mean_activation has 49 entries, expected 48"),
        (with_field("histogram", []), "histogram has 0 entries, expected 48"),
        (with_entry("histogram", 5, [1, 2]), r"histogram\[5\] is \[1, 2\], expected 32 counts"),
        (with_entry("histogram", 3, [0] * 32), r"histogram\[3\] .* expected counts that add up to count"),
        (with_entry("count", 3, -1), r"`int` >= 0 - at `\$.count\[3\]`"),
        (with_entry("count", 3, 401), r"count\[3\] is 401, expected 0 to tokens, 400"),
        (with_entry("count", 3, 2**70), r"count"),
        (with_entry("count", 3, 1.5), r"Expected `int`, got `float` - at `\$.count\[3\]`"),
        (with_entry("mean_activation", 3, None), r"mean_activation\[3\] is None, expected a number where"),
        (with_entry("mean_activation", 0, 1.0), r"mean_activation\[0\] is 1.0, expected .* else null"),
        (with_entry("mean_activation", 3, float("nan")), r"mean_activation\[3\] is not a finite number"),
        (with_entry("max_activation", 3, float("inf")), r"max_activation\[3\] is not a finite number"),
        (with_entry("mean_activation", 3, -2.0), r"mean_activation\[3\] is -2.0, expected at most 1e\+30, positive"),
        (with_entry("mean_activation", 3, "often"), r"\$.mean_activation\[3\]"),
        (with_entry("activation_variance", 3, -0.5), r"activation_variance\[3\] is -0.5"),
        (with_entry("max_activation", 3, 0.001), r"max_activation\[3\] is 0.001, expected at least the mean"),
        (with_entry("firing_rate", 3, 0.5), r"firing_rate\[3\] is 0.5, expected count / tokens"),
        (with_entry("firing_rate", 0, None), r"\$.firing_rate\[0\]"),
        (with_field("l0", 3.0), "l0 is 3.0, expected the sum of firing_rate, "),
        (with_field("tokens", 0), "tokens is 0, expected at least 1"),
        (with_field("tokens", -4), r"\$.tokens"),
        (with_field("histogram_edges", [1.0, 2.0]), r"histogram_edges is \[1.0, 2.0\]"),
        (with_field("provenance", {}), r"\$.provenance"),
        (lambda content: content.pop("count"), "missing required field `count`"),
        (lambda content: content["provenance"]["pair"].update(width=7), "count has 48 entries, expected 7"),
        (lambda content: content["provenance"]["pair"].pop("sae_id"), r"`sae_id` - at `\$.provenance.pair`"),
    ],
)
def test_what_cannot_be_statistics_is_named(saved, change, said):
    content = json.loads(saved.read_text())
    change(content)
    saved.write_text(json.dumps(content))
    with pytest.raises(UserError, match=said) as refusal:
        read_stats(saved)
    assert str(refusal.value).startswith(f"{saved}: ")


def test_a_number_too_large_for_a_float_is_no_statistic(saved, stats):
    """1e999 is valid JSON."""
    start = '"max_activation":[null,'
    saved.write_text(saved.read_text().replace(f"{start}{stats.max_activation[1]}", f"{start}1e999"))
    with pytest.raises(UserError, match="max_activation"):
        read_stats(saved)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "an empty file"),
        ("<!DOCTYPE html><html>", "an HTML or XML page"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1", "a Git LFS pointer"),
        ("[1, 2]", "Expected `object`, got `array`"),
        ('{"tokens": NaN}', "tokens is not a finite number"),
        ('{"tokens": 4', "damaged or not complete"),
        ('{"sae_id": "x", "width": 1, "firing_rate": [0.5]}', "missing required field"),
    ],
)
def test_what_is_no_such_file_is_named(tmp_path, content, said):
    path = tmp_path / "stats.json"
    path.write_text(content)
    with pytest.raises(UserError, match=said) as refusal:
        read_stats(path)
    assert str(refusal.value).startswith(f"{path}: ")


def test_absent_files_and_folders_are_named(tmp_path):
    for path, said in ((tmp_path, "Is a directory"), (tmp_path / "no.json", "No such file")):
        with pytest.raises(UserError, match=said) as refusal:
            read_stats(path)
        assert str(path) in str(refusal.value)


@pytest.mark.parametrize("method", ["fsync", "replace"])
def test_a_full_disk_leaves_the_earlier_file(saved, stats, monkeypatch, method):
    before = saved.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    target, name = (os, "fsync") if method == "fsync" else (type(saved), "replace")
    monkeypatch.setattr(target, name, full)
    with pytest.raises(UserError, match=r"stats\.json: cannot be written: No space left on device; .* untouched"):
        save_stats(saved, dataclasses.replace(stats, tokens=500), PROVENANCE)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == ["stats.json"]


def test_a_folder_in_the_way_is_named(tmp_path, stats):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        save_stats(tmp_path / "file" / "stats.json", stats, PROVENANCE)


@pytest.mark.parametrize("field", ["mean_activation", "activation_variance", "max_activation"])
def test_nothing_impossible_is_written(tmp_path, stats, field):
    getattr(stats, field)[3] = np.nan
    with pytest.raises(ValueError, match=rf"{field}\[3\] is nan"):
        save_stats(tmp_path / "stats.json", stats, PROVENANCE)
    assert not list(tmp_path.iterdir())


def test_path(monkeypatch, tmp_path):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    name = "gemma-2-2b_20-gemmascope-res-16k_stats.json"
    assert stats_path(NeuroscopeConfig()) == tmp_path / "calibration" / name
    assert str(stats_path(NeuroscopeConfig(calibration_path="x.json"))) == "x.json"


def test_the_demo_pair_has_its_own_until_the_cache_has_some(monkeypatch, tmp_path, saved):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "DEMO_FOLDER", tmp_path / "bundled")
    demo = load_preset("demo")
    cached, bundled = cached_stats_path(demo), tmp_path / "bundled" / "stats.json"
    assert stats_path(demo) == cached
    bundled.parent.mkdir()
    bundled.write_text("")
    assert stats_path(demo) == bundled
    assert stats_path(dataclasses.replace(demo, sae_local_path="mine.npz")) != bundled
    assert stats_path(dataclasses.replace(demo, model_id="mine")) != bundled
    assert stats_path(dataclasses.replace(demo, calibration_path="x.json")).name == "x.json"
    cached.parent.mkdir(parents=True)
    cached.write_text("")
    assert stats_path(demo) == cached
