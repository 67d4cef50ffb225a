"""Activations around examples, on the demo pair after a pass as a user runs it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest

from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.corpus import setup, shading_run
from neuroscope_jax.corpus import shading as shading_module
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.corpus.shading import Shading, shading
from neuroscope_jax.corpus.step import local_mesh, residual_after
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.errors import UserError

SOME = [3, 60, 214]  # features that fire often in the demo corpus
Row = dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A pass over 70 samples, which no batch size divides."""
    files = Files(tmp_path_factory.mktemp("pass") / "demo_stats.json")
    words = ["calibrate", "run", "--config", "demo", "--samples", "70", "--output", str(files.stats)]
    done = subprocess.run([sys.executable, "-m", "neuroscope_jax", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return files


@pytest.fixture
def files(finished: Files, tmp_path: Path) -> Files:
    """A copy of that pass without shading."""
    copy = Files(tmp_path / finished.stats.name)
    for path in finished.all():
        shutil.copy(path, tmp_path)
    return copy


@pytest.fixture(scope="module")
def config() -> NeuroscopeConfig:
    return load_preset("demo")


@pytest.fixture(scope="module")
def shaded(finished: Files, config: NeuroscopeConfig) -> Shading:
    return shading(config, finished)


@pytest.fixture(scope="module")
def examples(finished: Files) -> list[Row]:
    """Those that are shown."""
    return pq.read_table(finished.examples, filters=[("kind", "in", ["top", "random"])]).to_pylist()


def around(shaded: Shading, example: Row) -> np.ndarray:
    return shaded.of(example["feature"])[example["document"], example["offset"]]


def test_the_firing_token_is_as_strong_as_in_the_pass(shaded: Shading, examples: list[Row]) -> None:
    found = [around(shaded, example)[example["at"]] for example in examples]
    assert len(found) > 10_000
    np.testing.assert_allclose(found, [example["activation"] for example in examples], rtol=1e-4)


def test_there_is_one_activation_for_each_token_of_the_context(shaded: Shading, examples: list[Row]) -> None:
    lengths = [len(around(shaded, example)) for example in examples]
    assert lengths == [len(example["ids"]) for example in examples]
    assert 25 in lengths
    assert min(lengths) < 25  # where the sample begins or ends


def test_all_of_a_context_is_what_the_model_says_of_its_sample_alone(
    shaded: Shading, examples: list[Row], finished: Files, config: NeuroscopeConfig
) -> None:
    passages = {(row["document"], row["sample"]): row["ids"] for row in pq.read_table(finished.passages).to_pylist()}
    pair = setup.find(config)
    part, params, sae = pair.load(local_mesh())
    structure = Structure.of(pair.tokenizer)
    encode = jax.jit(lambda ids: sae.encode(residual_after(part, params, ids)))
    compared = 0
    for example in examples[:: len(examples) // 200]:
        ids = passages[example["document"], example["sample"]]
        behind = [300] * (STRIDE - len(ids))  # what comes later makes no difference
        expected = np.array(encode(jnp.asarray([[structure.bos_id, *ids, *behind]]))[0, 1:, example["feature"]])
        expected = expected[: len(ids)]
        expected[structure.where(np.array([ids]))[0]] = 0
        first = example["offset"] % STRIDE - example["at"]
        expected = expected[first : first + len(example["ids"])]
        np.testing.assert_allclose(around(shaded, example), expected, rtol=1e-4, atol=1e-4)
        compared += int((expected > 0).sum())
    assert compared > 220  # firing tokens and others


def test_only_shown_examples_have_it(shaded: Shading, finished: Files) -> None:
    held_out = pq.read_table(finished.examples, filters=[("kind", "==", "held_out")]).to_pylist()
    assert held_out
    assert not [e for e in held_out if (e["document"], e["offset"]) in shaded.of(e["feature"])]
    stats = json.loads(finished.stats.read_text())
    assert shaded.of(stats["count"].index(0)) == {}


@pytest.mark.slow
def test_four_devices_find_the_same(finished: Files, shaded: Shading, files: Files) -> None:
    program = (
        "from pathlib import Path; from neuroscope_jax.config import load_preset; "
        "from neuroscope_jax.corpus.output import Files; from neuroscope_jax.corpus.shading import shading; "
        f"shading(load_preset('demo'), Files(Path({str(files.stats)!r})))"
    )
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    here, there = (pq.read_table(each.shading).to_pydict() for each in (finished, files))
    activations = [np.concatenate(columns.pop("activations")) for columns in (here, there)]
    assert here == there
    np.testing.assert_allclose(*activations, rtol=1e-4, atol=1e-4)


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The features of each time that the model ran."""
    times: list[set[int]] = []

    def spied(pair: setup.Pair, asked: shading_run.Asked, passages: Any) -> np.ndarray:
        times.append(set(asked.feature.tolist()))
        return shading_run.activations_around(pair, asked, passages)

    monkeypatch.setattr(shading_module, "activations_around", spied)
    return times


def test_nothing_is_worked_out_twice(
    files: Files, config: NeuroscopeConfig, shaded: Shading, worked_out: list[set[int]]
) -> None:
    assert set(shading(config, files, SOME[1:]).of(SOME[1])) == set(shaded.of(SOME[1]))
    found = shading(config, files, SOME)
    assert shading(config, files, SOME[:2]).of(SOME[2])
    assert worked_out == [set(SOME[1:]), {SOME[0]}]
    for feature in SOME:
        expected = shaded.of(feature)
        assert expected.keys() == found.of(feature).keys()
        for name, activations in found.of(feature).items():
            np.testing.assert_allclose(activations, expected[name], rtol=1e-4, atol=1e-4)


def rewrite(path: Path, **changes: Any) -> None:
    """The same file of another pass."""
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"neuroscope"])
    for name, value in changes.items():
        (about["pair"] if name in about["pair"] else about)[name] = value
    pq.write_table(table.replace_schema_metadata({"neuroscope": json.dumps(about)}), path)


@pytest.mark.parametrize("spoil", [lambda path: rewrite(path, run="earlier"), lambda path: path.write_text("text")])
def test_what_is_of_another_pass_or_broken_is_replaced(
    files: Files, config: NeuroscopeConfig, worked_out: list[set[int]], spoil: Callable[[Path], object]
) -> None:
    shading(config, files, SOME[:1])
    spoil(files.shading)
    found = shading(config, files, SOME[1:])
    assert worked_out == [set(SOME[:1]), set(SOME[1:])]
    assert not found.of(SOME[0])
    assert found.of(SOME[1])


def test_features_without_examples_need_no_model(
    files: Files, config: NeuroscopeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = json.loads(files.stats.read_text())["count"].index(0)
    monkeypatch.setattr(setup.Pair, "load", None)
    assert shading(config, files, [dead]).of(dead) == {}


def test_files_of_different_passes_are_refused(files: Files, config: NeuroscopeConfig) -> None:
    rewrite(files.examples, run="another")
    with pytest.raises(UserError, match=r"examples\.parquet: of pass another, but demo_passages\.parquet is of pass"):
        shading(config, files, SOME)


def test_files_of_another_pair_are_refused(files: Files, config: NeuroscopeConfig) -> None:
    rewrite(files.passages, sae_sha256="0" * 64)
    with pytest.raises(UserError, match=r"passages\.parquet: made with another SAE .*00000000"):
        shading(config, files, SOME)
    assert not files.shading.exists()


def test_absent_and_other_files_are_told(files: Files, config: NeuroscopeConfig) -> None:
    files.passages.write_text("<html>")
    with pytest.raises(UserError, match=r"passages\.parquet: an HTML or XML page"):
        shading(config, files, SOME)
    files.passages.unlink()
    with pytest.raises(UserError, match=r"passages\.parquet: no such file; `neuroscope_jax calibrate run` writes it"):
        shading(config, files, SOME)


def test_a_sample_that_is_missing_is_told(files: Files, config: NeuroscopeConfig) -> None:
    table = pq.read_table(files.passages)
    pq.write_table(table.slice(0, len(table) // 2), files.passages)
    with pytest.raises(UserError, match=r"passages\.parquet: \d+ of \d+ samples are not in it"):
        shading(config, files, SOME)


def test_a_feature_that_the_sae_lacks_is_told(files: Files, config: NeuroscopeConfig) -> None:
    with pytest.raises(UserError, match="feature 2048: the SAE has features 0 to 2047"):
        shading(config, files, [3, 2048])


def test_activations_that_are_not_finite_are_told(
    files: Files, config: NeuroscopeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = setup.Pair.load

    def damaged(pair: setup.Pair, mesh: Any) -> Any:
        part, params, sae = load(pair, mesh)
        weight = params["layers_2"]["mlp"]["up_proj"]["weight"]
        params["layers_2"]["mlp"]["up_proj"]["weight"] = weight.at[0, 0].set(np.nan)
        return part, params, sae

    monkeypatch.setattr(setup.Pair, "load", damaged)
    with pytest.raises(UserError, match="not finite; the weights are damaged"):
        shading(config, files, SOME)
    assert not files.shading.exists()


def test_another_file_under_the_name_of_passages_is_told(files: Files, config: NeuroscopeConfig) -> None:
    shutil.copy(files.windows, files.passages)
    with pytest.raises(UserError, match=r"_passages.parquet: lacks sample; .*calibrate run"):
        shading(config, files, SOME)


def test_another_file_under_the_name_of_the_shading_is_replaced(files: Files, config: NeuroscopeConfig) -> None:
    shutil.copy(files.passages, files.shading)
    assert shading(config, files, [3]).of(3)
