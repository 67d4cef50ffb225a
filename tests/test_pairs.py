"""From flags to a pair: which SAE file, which layer, whose labels."""

import logging
from pathlib import Path

import pytest

from neuroscope_jax import pairs
from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.errors import UserError
from neuroscope_jax.pairs import resolve

RELEASE = "google/gemma-scope-2b-pt-res"


def ids(config: NeuroscopeConfig) -> tuple[str, str]:
    return config.neuronpedia_model_id, config.neuronpedia_sae_id


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A local folder laid out like a Gemma Scope release."""
    for variant in (
        "layer_2/width_1k/average_l0_9",
        "layer_2/width_1k/average_l0_90",
        "layer_2/width_1k/average_l0_150",
    ):
        (tmp_path / variant).mkdir(parents=True)
        (tmp_path / variant / "params.npz").touch()
    return tmp_path


def test_nothing_asked_means_the_defaults() -> None:
    assert resolve(None, {}) == NeuroscopeConfig()


def test_layer_and_width_of_the_default_pair_keep_its_path() -> None:
    assert resolve(None, {}, 20, "16k") == NeuroscopeConfig()


def test_another_layer_of_a_published_release() -> None:
    config = resolve(None, {}, 5)
    assert config.sae_path == "layer_5/width_16k/average_l0_68/params.npz"
    assert config.target_layer == 5
    assert ids(config) == ("gemma-2-2b", "5-gemmascope-res-16k")


def test_variant_nearest_the_usual_l0_in_a_local_release(release: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        config = resolve(None, {"sae_repo": str(release)}, 2, "1k")
    assert config.sae_path == "layer_2/width_1k/average_l0_90/params.npz"
    assert config.target_layer == 2
    assert "average_l0_90/params.npz taken for layer 2, width 1k" in caplog.text


def test_a_layer_or_width_that_is_not_there(release: Path) -> None:
    with pytest.raises(UserError, match="no SAE in layer_3/width_1k; choose another --sae-layer"):
        resolve(None, {"sae_repo": str(release)}, 3, "1k")
    with pytest.raises(UserError, match="--sae demo: no SAE in layer_99/"):
        resolve("demo", {}, 99)


def test_a_listing_without_network_says_what_to_give_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(pairs.HfApi, "model_info", unreachable)
    with pytest.raises(UserError, match=r"cannot be listed \(ConnectionError\); name one with --sae-path"):
        resolve(None, {}, 20, "65k")


def test_a_hub_listing_is_filtered_by_layer_and_width(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sibling:
        def __init__(self, path: str) -> None:
            self.rfilename = path

    class Info:
        siblings = [
            Sibling(p)
            for p in (
                "README.md",
                "layer_2/width_65k/average_l0_100/params.npz",
                "layer_20/width_65k/canonical/params.npz",
                "layer_20/width_65k/average_l0_20/params.npz",
                "layer_20/width_65k/average_l0_114/params.npz",
            )
        ]

    monkeypatch.setattr(pairs.HfApi, "model_info", lambda *_, **__: Info)
    assert resolve(None, {}, 20, "65k").sae_path == "layer_20/width_65k/average_l0_114/params.npz"


def test_path_overrides_layer_and_width_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    config = resolve(None, {"sae_path": "layer_12/width_16k/average_l0_82/params.npz"}, 20, "16k")
    assert config.target_layer == 12
    assert ids(config) == ("gemma-2-2b", "12-gemmascope-res-16k")
    assert "--sae-path overrides" in caplog.text


def test_local_file_takes_its_layer_from_its_path_or_from_the_flag() -> None:
    assert resolve(None, {"sae_local_path": "/data/layer_7/params.npz"}).target_layer == 7
    assert resolve(None, {"sae_local_path": "/data/mine.npz"}, 9).target_layer == 9
    assert resolve("demo", {"sae_local_path": "/data/mine.npz"}).target_layer == load_preset("demo").target_layer
    with pytest.raises(UserError, match="mine.npz: the path names no layer_N; say with --sae-layer"):
        resolve(None, {"sae_local_path": "/data/mine.npz"})


def test_an_sae_of_a_release_replaces_a_local_file_of_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('sae_local_path = "/data/layer_7/params.npz"\n')
    assert resolve(str(file), {}).target_layer == 7
    assert resolve(str(file), {}, 5).sae_local_path is None


def test_layer_of_a_toml_file_follows_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('sae_path = "layer_12/width_16k/average_l0_82/params.npz"\n')
    assert resolve(str(file), {}).target_layer == 12


@pytest.mark.parametrize(("model", "preset"), [("google/gemma-2-9b-it", "gemma-2-9b-it"), ("demo", "demo")])
def test_a_model_named_alone_gets_the_sae_of_its_preset(model: str, preset: str) -> None:
    assert resolve(None, {"model_id": model}) == load_preset(preset)


def test_labels_serve_the_tuned_and_the_base_model_and_local_copies() -> None:
    for model in ("google/gemma-2-2b", "/models/gemma-2-2b-it", "/hub/models--google--gemma-2-2b-it/snapshots/1f"):
        assert ids(resolve(None, {"model_id": model})) == ("gemma-2-2b", "20-gemmascope-res-16k")
    local = "/saes/gemma-scope-2b-pt-res/layer_20/width_16k/average_l0_71/params.npz"
    assert ids(resolve(None, {"sae_local_path": local})) == ("gemma-2-2b", "20-gemmascope-res-16k")


@pytest.mark.parametrize(
    "asked",
    [
        {"model_id": "someone/other-model"},
        {"sae_path": "layer_20/width_16k/average_l0_139/params.npz"},
        {"sae_local_path": "/data/layer_20/width_16k/average_l0_71/params.npz"},
        {"sae_repo": "someone/other-saes", "sae_path": "layer_20/width_16k/average_l0_71/params.npz"},
    ],
)
def test_no_labels_are_borrowed_for_another_pair(asked: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        config = resolve(None, asked)
    assert config.neuronpedia_sae_id != "20-gemmascope-res-16k"
    assert "/" not in "".join(ids(config))  # they name files in the cache folder
    assert "no published labels belong to" in caplog.text


def test_label_ids_a_person_wrote_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'sae_repo = "{tmp_path}"\nneuronpedia_model_id = "a"\nneuronpedia_sae_id = "b"\n')
    assert ids(resolve(str(file), {"top_k": 3})) == ("a", "b")
