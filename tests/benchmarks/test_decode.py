"""The benchmark on its tiny shape: that it measures, not what."""

import shutil
from pathlib import Path

import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from benchmarks import checkpoint as checkpoint_module
from benchmarks import decode, peers
from benchmarks.checkpoint import checkpoint, hf_config, sae_file
from benchmarks.decode import main
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.report import markdown, requirements
from benchmarks.results import Bandwidth, Ours, Peer, Plan, Run, Spread, Start, StepCost
from benchmarks.shapes import GEMMA_2_2B, TINY
from neuroscope_jax.models.registry import build_model, read_config
from neuroscope_jax.models.weights import load_weights
from neuroscope_jax.sae.formats import load_sae


@pytest.fixture(scope="module")
def folder() -> Path:
    return checkpoint(TINY)


def run_of(tapped: float, ours_per_second: float, recompiled: int = 0, compiled_again: int = 0) -> Run:
    """A run with hand-made figures, PyTorch at 2 tokens a second and the bare step at 100 ms."""
    first, again = Start(10, 5, 4, 16, 0, 17), Start(9, 1, 0.1, compiled_again, 16 - compiled_again, 12)
    ours = Ours(
        start=first,
        second_start=again,
        first_token_seconds={"64": Spread.of([1.0])},
        tokens_per_second=Spread.of([ours_per_second]),
        read_speed=Spread.of([5e10]),
        share=Spread.of([ours_per_second * 1.01e10 / 5e10]),
        step=StepCost(
            Spread.of([tapped]), Spread.of([0.1]), Spread.of([tapped / 0.1 - 1]), 2_000_000, [], ["sae_encode"]
        ),
        recompiled=recompiled,
        average_l0=70,
        model_bytes=10**10,
        sae_bytes=10**8,
        peak_bytes=11 * 2**30,
        ids=[1, 2, 3],
    )
    peer = Peer(20, {"64": Spread.of([2.0])}, Spread.of([2.0]), 12 * 2**30, [1, 2, 4])
    bandwidth = Bandwidth("cpu", {"sum": Spread.of([5e10])})
    return Run({}, GEMMA_2_2B.name, "cpu", bandwidth, {"float32": ours}, {"torch-float32": peer}, {})


def test_checkpoint_loads_as_a_real_one_does(folder: Path) -> None:
    model = build_model(read_config(folder), jnp.bfloat16)
    params = load_weights(folder, model, jnp.bfloat16)
    table = np.asarray(params["embed_tokens"]["weight"], np.float32)
    assert table.std() == pytest.approx(checkpoint_module.EMBEDDING_SCALE / TINY.model.hidden_size**0.5, rel=0.05)
    assert load_sae(sae_file(folder), TINY.model.hidden_size).d_sae == TINY.d_sae


def test_checkpoint_goes_on_where_it_was_interrupted(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    unfinished = tmp_path / "benchmarks" / (folder.name + ".unfinished")
    shards = sorted(path.name for path in folder.glob("*.safetensors"))
    unfinished.mkdir(parents=True)
    shutil.copy(folder / shards[0], unfinished)
    (unfinished / (shards[1] + ".unfinished")).write_bytes(b"half a shard")
    drawn: list[str] = []
    draw = checkpoint_module._tensor
    monkeypatch.setattr(checkpoint_module, "_tensor", lambda key, size: drawn.append(key) or draw(key, size))
    resumed = checkpoint(TINY)
    assert not any("embed_tokens" in key for key in drawn)
    assert {path.name: path.read_bytes() for path in resumed.iterdir() if path.suffix != ".npz"} == {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".npz"
    }


def test_config_is_what_transformers_calls_gemma_2_2b() -> None:
    config = hf_config(GEMMA_2_2B)
    assert (config["num_hidden_layers"], config["hidden_size"], config["vocab_size"]) == (26, 2304, 256_000)
    assert config["model_type"] == "gemma2"


@pytest.mark.slow
def test_a_program_is_measured_from_start_to_report(capsys, tmp_path: Path) -> None:
    json = tmp_path / "run.json"
    main(["--shape", "tiny", "--only", "int8", "--tokens", "4", "--repeats", "1", "--json", str(json)])
    assert "tokens/s with features" in capsys.readouterr().out
    run = msgspec.json.decode(json.read_bytes(), type=Run)
    ours = run.ours["int8"]
    assert len(ours.ids) == 4
    assert ours.recompiled == 0
    assert ours.step.bare_marks == []
    assert len(ours.step.tapped_marks) >= 3
    assert 0 < ours.average_l0 < TINY.d_sae / 4
    assert ours.second_start is not None
    assert ours.second_start.reused > 0


@pytest.mark.parametrize(
    ("run", "missed"),
    [
        (run_of(tapped=0.102, ours_per_second=5), []),
        (run_of(tapped=0.104, ours_per_second=5), ["tap"]),
        (run_of(tapped=0.1, ours_per_second=4), ["PyTorch"]),
        (run_of(tapped=0.1, ours_per_second=5, recompiled=1), ["sampling"]),
        (run_of(tapped=0.1, ours_per_second=5, compiled_again=16), ["cache"]),
    ],
)
def test_requirements_are_held_against_the_figures(run: Run, missed: list[str]) -> None:
    failed = [what for what, _, holds in requirements(run) if not holds]
    assert len(failed) == len(missed)
    assert all(word in what for word, what in zip(missed, failed, strict=True))
    assert markdown(run).count("**NO**") == len(missed)


def test_agreement_with_pytorch_is_counted() -> None:
    assert "| 2 of 3 | 3 of 3 |" in markdown(run_of(0.1, 5))


def test_an_absent_pytorch_is_told_loudly(monkeypatch, capsys) -> None:
    monkeypatch.setattr(decode, "measure", lambda *_, **__: Bandwidth("cpu", {"sum": Spread.of([5e10])}))
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    main(["--shape", "tiny", "--only", "torch-float32"])
    assert "**torch-float32 was NOT measured:** torch and transformers are not installed; pip install" in (
        capsys.readouterr().out
    )


def test_a_failing_process_ends_the_run(capfd) -> None:
    plan = Plan("/nonexistent", "tiny", "float32", "cpu", 2, 1)
    with pytest.raises(MeasurementFailed, match="benchmarks.ours"):
        measure("ours", plan, Ours)
    assert capfd.readouterr().err.startswith("error: /nonexistent/config.json")
