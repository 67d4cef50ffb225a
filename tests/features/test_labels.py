"""Labels: priority, fallback, refusal."""

import json

import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.labels import load_labels, read_labels


@pytest.fixture
def labels_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    folder = tmp_path / "labels"
    folder.mkdir()
    return folder


def save(folder, source, labels):
    (folder / f"gemma-2-2b_20-gemmascope-res-16k_{source}.json").write_text(json.dumps(labels))


def test_generated_labels_override_neuronpedia(labels_folder):
    save(labels_folder, "neuronpedia", {"4521": "hello"})
    assert load_labels(NeuroscopeConfig(), 16384).text(4521) == "hello"
    save(labels_folder, "autointerp", {"4521": "greeting or salutation"})
    labels = load_labels(NeuroscopeConfig(), 16384)
    assert (labels.source, labels.text(4521)) == ("autointerp", "greeting or salutation")


def test_numeric_fallback(labels_folder):
    labels = load_labels(NeuroscopeConfig(), 16384)
    assert labels.source == "numeric"
    assert labels.text(4521) == "feature_4521"
    assert len(labels.all()) == 16384
    assert labels.all()["0"] == "feature_0"


def test_holes_and_blanks_fall_back_one_by_one(labels_folder):
    save(labels_folder, "autointerp", {"1": " articles ", "2": "  "})
    labels = load_labels(NeuroscopeConfig(), 16384)
    assert [labels.text(i) for i in range(3)] == ["feature_0", "articles", "feature_2"]


@pytest.mark.parametrize("text", ['{"16384": "x"}', '{"-1": "x"}', '{"a": "x"}', '{"1": 2}', "[]", "", "{"])
def test_what_cannot_be_its_labels_is_refused(tmp_path, text):
    path = tmp_path / "labels.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"labels\.json"):
        read_labels(path, 16384)


def test_odd_characters_survive(tmp_path):
    path = tmp_path / "labels.json"
    odd = 'quote " newline \n separator \u2028 <script>alert(1)</script> 🌍'
    path.write_text(json.dumps({"7": odd}), encoding="utf-8")
    assert read_labels(path, 8) == {7: odd}
