"""The benchmark of labels, on a dozen features."""

from pathlib import Path

import pytest

from benchmarks import labels, labels_evidence
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER
from tests.autointerp.asking import served


def test_every_feature_made_up_has_the_examples_of_a_real_one(tmp_path: Path) -> None:
    labels_evidence.write(str(tmp_path), 12)
    evidence = Evidence(Files(tmp_path / "made_up_stats.json"), ChatTokenizer.load(DEMO_FOLDER / "model"))
    assert evidence.features() == list(range(12))
    for feature in range(12):
        found = evidence.of(feature)
        assert (len(found.top), len(found.random), len(found.held_out)) == (20, 5, 60)
        assert all(example.token and example.before and example.after for example in [*found.top, *found.random])


def test_a_run_is_measured_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels_evidence.write(str(tmp_path), 12)
    with served(monkeypatch) as server:
        found = labels.measure(tmp_path, concurrency=4)
        assert server.requests == found.labelled == 12
        assert server.most_in_flight <= 4
    assert 0 < found.quarter_bytes <= found.peak_bytes
    assert 0 < found.estimate_seconds < found.seconds
    report = labels.markdown(found, 12, 4)
    assert "| features labelled | 12 of 12 |" in report
    assert "| every feature labelled | 12 | yes |" in report
    assert "| every feature labelled | 12 | **NO** |" in labels.markdown(found, 13, 4)
