"""Loading statistics."""

import json

import numpy as np
import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import load_stats, stats_path


def stats_file(tmp_path, **changed):
    content = {
        "sae_id": "repo/sae",
        "width": 3,
        "firing_rate": [0.0, 0.25, 0.75],
        "mean_activation": [None, 2.0, 3.5],
        "activation_variance": [None, 0.5, 1.0],
        "tokens": 400,
    }
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({**content, **changed}))
    return path


def test_a_feature_that_never_fired_reads_as_zero(tmp_path):
    stats = load_stats(stats_file(tmp_path), "repo/sae", 3)
    assert np.array_equal(stats.firing_rate, np.float32([0, 0.25, 0.75]))
    assert np.array_equal(stats.mean_activation, np.float32([0, 2, 3.5]))
    assert np.array_equal(stats.activation_variance, np.float32([0, 0.5, 1]))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sae_id": "repo/other"}, "statistics of repo/other"),
        ({"width": 4}, r"repo/sae \(width 4\)"),
        ({"firing_rate": [0.0]}, "firing_rate has 1 entries, expected 3"),
        ({"firing_rate": ["often"] * 3}, "not a readable calibration file"),
    ],
)
def test_statistics_of_something_else_are_refused(tmp_path, changed, said):
    with pytest.raises(UserError, match=said):
        load_stats(stats_file(tmp_path, **changed), "repo/sae", 3)


def test_path(monkeypatch, tmp_path):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    name = "gemma-2-2b_20-gemmascope-res-16k_stats.json"
    assert stats_path(NeuroscopeConfig()) == tmp_path / "calibration" / name
    assert str(stats_path(NeuroscopeConfig(calibration_path="x.json"))) == "x.json"
