"""NeuroscopeConfig: the specification's defaults, presets by name or path, and errors that name the field."""

from pathlib import Path

import pytest

from neuroscope_jax import config
from neuroscope_jax.config import CorpusSource, NeuroscopeConfig, build_config, load_preset
from neuroscope_jax.errors import UserError


def test_defaults_are_the_specifications() -> None:
    c = NeuroscopeConfig()
    assert (c.model_id, c.sae_repo) == ("google/gemma-2-2b-it", "google/gemma-scope-2b-pt-res")
    assert (c.sae_path, c.target_layer) == ("layer_20/width_16k/average_l0_71/params.npz", 20)
    assert (c.top_k, c.broadcast_buffer_size, c.port, c.features_port) == (10, 1024, 8080, 8081)
    assert (c.neuronpedia_model_id, c.neuronpedia_sae_id) == ("gemma-2-2b", "20-gemmascope-res-16k")
    assert (c.feature_filter, c.filter_threshold, c.calibration_path) == ("frequency", 0.5, None)


def test_sae_id_is_the_specifications() -> None:
    assert NeuroscopeConfig().sae_id == "google/gemma-scope-2b-pt-res/layer_20/width_16k/average_l0_71"
    assert NeuroscopeConfig(sae_local_path="/data/sae.npz").sae_id == "/data/sae.npz"


@pytest.mark.parametrize("name", config.preset_names())
def test_every_preset_loads_and_names_its_whole_pair(name: str) -> None:
    c = load_preset(name)
    assert f"layer_{c.target_layer}/" in c.sae_path
    assert c.neuronpedia_sae_id.startswith(f"{c.target_layer}-")
    assert {"model_id", "sae_repo", "neuronpedia_model_id"} <= set(config.preset_fields(name))


def test_presets_of_the_issue_are_there() -> None:
    assert {"demo", "gemma-2-2b-it", "gemma-2-9b-it"} <= set(config.preset_names())


def test_the_spelt_out_preset_equals_the_defaults() -> None:
    assert load_preset("gemma-2-2b-it") == NeuroscopeConfig()


def test_overrides_replace_single_fields() -> None:
    c = load_preset("demo", top_k=3)
    assert (c.model_id, c.top_k) == ("demo", 3)


def test_a_toml_file_by_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('top_k = 7\nfilter_threshold = 1\nplatform = "cpu"\n')
    c = load_preset(str(file))
    assert (c.top_k, c.filter_threshold, c.platform, c.model_id) == (7, 1.0, "cpu", "google/gemma-2-2b-it")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("top_k", 0, "top_k (--top-k) is 0; expected at least 1"),
        ("port", 70000, "port (--port) is 70000; expected a port from 0 to 65535"),
        ("features_port", 8080, "features_port (--features-port) is 8080"),
        ("filter_threshold", float("nan"), "filter_threshold (--filter-threshold) is nan"),
        ("context_length", 1, "context_length (--context-length) is 1; expected at least 2"),
        ("target_layer", -1, "target_layer (--sae-layer) is -1"),
        ("feature_filter", "loud", "expected one of none, frequency, surprise, combined"),
        ("top_k", "ten", "top_k is 'ten'; expected int"),
        ("top_k", True, "top_k is True; expected int"),
        ("model_id", 5, "model_id is 5; expected str"),
        ("api_key", 12345, "api_key is not shown; expected text"),
        ("api_key", "se same", "api_key (--api-key) is 'not shown'; expected 1 to 512 ASCII characters, no spaces"),
        ("api_key", "", "expected 1 to 512 ASCII characters"),
        ("allowed_hosts", ["http://a"], "allowed_hosts (--allowed-hosts) is 'http://a'; expected names or addresses"),
        ("allowed_origins", ["a.example"], "allowed_origins (--allowed-origins) is 'a.example'; expected origins"),
        ("heartbeat_seconds", -1, "heartbeat_seconds (--heartbeat-seconds) is -1.0; expected seconds"),
        ("queue_size", 0, "queue_size (--queue-size) is 0; expected at least 1"),
        ("top_kk", 5, "unknown field 'top_kk'; did you mean 'top_k'?"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(field: str, value: object, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        build_config({field: value}, "mine.toml")
    assert expected in str(caught.value)
    assert "se same" not in str(caught.value)


def test_sources_of_a_corpus_are_tables(tmp_path: Path) -> None:
    assert NeuroscopeConfig().corpus == (CorpusSource(dataset="Salesforce/wikitext", config="wikitext-103-raw-v1"),)
    file = tmp_path / "mine.toml"
    file.write_text('[[corpus]]\npath = "texts"\nweight = 2\n[[corpus]]\ndataset = "owner/rows"\ntext_field = "body"\n')
    expected = CorpusSource(path="texts", weight=2.0), CorpusSource(dataset="owner/rows", text_field="body")
    assert load_preset(str(file)).corpus == expected
    assert build_config({"corpus": expected}).corpus == expected


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        ([{"path": "x", "dataset": "y"}], "path = 'x' and dataset = 'y'; expected one of the two"),
        ([{"split": "test"}], "path = None and dataset = None; expected one of the two"),
        ([{"path": "x", "config": "y"}], "config is 'y' beside path = 'x'; only a dataset has one"),
        ([{"path": "x", "weight": 0}], "weight is 0.0; expected a number above 0"),
        ([{"path": "x", "weight": float("nan")}], "weight is nan; expected a number above 0"),
        ([{"path": "x", "text_field": ""}], "text_field is empty"),
        ([{"path": "x", "weigth": 1}], "mine.toml: corpus: unknown field 'weigth'; did you mean 'weight'?"),
        ([{"path": "x"}, {"path": 3}], "mine.toml: corpus[1].path is 3; expected str"),
        ({"path": "x"}, "mine.toml: corpus is {'path': 'x'}; expected one or more [[corpus]] tables"),
        ([], "corpus (no flag) is (); expected one or more [[corpus]] tables"),
    ],
)
def test_a_wrong_source_is_named_with_what_was_expected(corpus: object, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        build_config({"corpus": corpus}, "mine.toml")
    assert expected in str(caught.value)


def test_both_ports_may_be_any_free_one() -> None:
    assert NeuroscopeConfig(port=0, features_port=0).port == 0


def test_an_unknown_preset_lists_those_there_are() -> None:
    with pytest.raises(UserError, match=r"--config nope: no such preset; there are demo, gemma-2-2b-it"):
        load_preset("nope")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("top_k = \n")
    with pytest.raises(UserError, match=r"broken\.toml: not valid TOML"):
        load_preset(str(broken))
    with pytest.raises(UserError, match=r"absent\.toml: cannot be read"):
        load_preset(str(tmp_path / "absent.toml"))


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    assert config.cache_folder() == tmp_path
    monkeypatch.delenv("NEUROSCOPE_CACHE")
    assert config.cache_folder().name == "neuroscope"
