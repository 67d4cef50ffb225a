"""The corpus benchmark on its tiny shape: that it measures, not what."""

import importlib.util

import msgspec
import numpy as np
import pytest

from benchmarks import peers
from benchmarks.corpus import main
from benchmarks.corpus_pairs import corpus_pair
from benchmarks.corpus_report import markdown, requirements
from benchmarks.corpus_results import CorpusRun, OurPass, Passed, PeerPass, Report, Took, overhead
from benchmarks.prompts import BOS
from benchmarks.shapes import GEMMA_2_2B, TINY

DELPHI = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "delphi"))


def ours(seconds: float = 10, full: float = 1.05, grown: int = 0, firings: int = 100_000) -> OurPass:
    """A pass of 4096 tokens in so many seconds, and a bare batch of one second."""
    peak = 9 * 2**30
    half = Passed(2048, Took(seconds / 2, seconds), peak, firings // 2)
    whole = Passed(4096, Took(seconds, 2 * seconds), peak + grown, firings)
    bare, collecting = [Took(1, 2), Took(2, 4), Took(1, 2)], [Took(full, 2), Took(2 * full, 4), Took(9, 2)]
    return OurPass(half, whole, 16, bare, collecting, 10**8)


def run_of(*, seconds: float = 10, full: float = 1.05, grown: int = 0, firings: int = 100_000) -> CorpusRun:
    """One process of each program on the 2B shape, delphi's pass taking 16 seconds."""
    peer = PeerPass(Passed(2048, Took(8, 16), 2**30, 50_000), Passed(4096, Took(16, 30), 2**31, 100_000))
    measured = ours(seconds, full, grown, firings)
    return CorpusRun(GEMMA_2_2B.name, 32, {"float32": [measured]}, {"delphi-float32": [peer]}, {})


@pytest.mark.parametrize(
    ("run", "missed"),
    [
        (run_of(), []),
        (run_of(full=1.11), ["collecting"]),
        (run_of(seconds=11), ["delphi"]),
        (run_of(grown=2**26), ["memory"]),
        (run_of(firings=100_200), ["firings"]),
    ],
)
def test_requirements_are_held_against_the_figures(run: CorpusRun, missed: list[str]) -> None:
    failed = [what for what, _, holds in requirements(run) if not holds]
    assert len(failed) == len(missed)
    assert all(word in what for word, what in zip(missed, failed, strict=True))
    assert markdown(Report({}, "cpu", [run])).count("**NO**") == len(missed)


def test_the_cost_is_that_of_the_usual_batch_in_all_rounds() -> None:
    cost = overhead([ours(full=1.04), ours(full=1.06)])
    assert cost.seconds == pytest.approx(0.06)
    assert cost.cpu_seconds == 0


def test_a_report_gives_the_range_over_the_rounds() -> None:
    run = CorpusRun("demo", 32, {"float32": [ours(8), ours(16), ours(10)]}, {}, {})
    assert "| 409.6 (256.0 to 512.0) |" in markdown(Report({}, "cpu", [run]))


def test_samples_are_whole_rows_behind_bos_and_always_the_same() -> None:
    samples = corpus_pair(TINY.name, 5000).samples
    assert samples.shape == (64, 128)
    assert (samples[:, 0] == BOS).all()
    assert (samples[:, 1:] != BOS).all()
    assert np.array_equal(samples, corpus_pair(TINY.name, 5000).samples)


@pytest.mark.slow
def test_float32_is_measured_from_start_to_report(capsys, tmp_path) -> None:
    json = tmp_path / "report.json"
    main(["--shape", "tiny", "--only", "float32", "--tokens", "4096", "--repeats", "1", "--json", str(json)])
    assert "cost of collecting" in capsys.readouterr().out
    (run,) = msgspec.json.decode(json.read_bytes(), type=Report).runs
    (measured,) = run.ours["float32"]
    assert (measured.half.tokens, measured.whole.tokens) == (2048, 4096)
    assert 0 < measured.half.firings < measured.whole.firings
    assert 0 < measured.whole.firings / measured.whole.tokens < TINY.d_sae / 4
    assert len(measured.bare) == len(measured.full) == run.samples // measured.rows


@pytest.mark.skipif(not DELPHI, reason=peers.DELPHI)
def test_delphi_sees_the_same_firings(capsys, tmp_path) -> None:
    json = tmp_path / "report.json"
    main(["--shape", "tiny", "--only", "float32,delphi-float32", "--repeats", "1", "--json", str(json)])
    (run,) = msgspec.json.decode(json.read_bytes(), type=Report).runs
    assert run.peers["delphi-float32"][0].whole.firings == pytest.approx(run.ours["float32"][0].whole.firings, rel=1e-3)


def test_an_absent_delphi_is_told_loudly(monkeypatch, capsys) -> None:
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None if name == "delphi" else object())
    main(["--shape", "tiny", "--only", "delphi-float32"])
    assert "**delphi-float32 was NOT measured:** delphi is not installed; pip install" in capsys.readouterr().out


def test_an_unknown_program_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "float64"])
    assert "float64: expected some of float32," in capsys.readouterr().err
