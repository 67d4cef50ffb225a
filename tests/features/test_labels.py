"""Labels: priority, fallback, refusal."""

import dataclasses
import json
import re

import pytest

from neuroscope_jax import cli
from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.label_details import LabelDetail, LabelDetails, Score, details_path, save_labels
from neuroscope_jax.features.labels import labels_path, load_labels, read_labels
from neuroscope_jax.identity import PairIdentity

CONFIG = NeuroscopeConfig()
WIDTH = 16384
PAIR = PairIdentity(CONFIG.model_id, "a" * 64, CONFIG.sae_id, "b" * 64, WIDTH, layer=20)
SCORE = Score("scored", 0.55, 0.6, 0.5, 0.06, 50, 20, 10, 0, "judge-1", [])


@pytest.fixture(autouse=True)
def labels_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    folder = tmp_path / "labels"
    folder.mkdir()
    return folder


def save(source, labels):
    labels_path(CONFIG, source).write_text(json.dumps(labels))


def details(source="autointerp", features=None, **fields):
    known = LabelDetails(
        source=source,
        pair=PAIR if source == "autointerp" else None,
        neuronpedia_model_id="gemma-2-2b",
        neuronpedia_sae_id="20-gemmascope-res-16k",
        width=WIDTH,
        made="2030-01-01T00:00:00+00:00",
        version="1",
        labeler=None,
        prompt_version=None,
        run=None,
        control=None,
        features=features or {},
    )
    return dataclasses.replace(known, **fields)


def labelled(text, **fields):
    return LabelDetail(text, "labelled", **fields)


def test_generated_labels_override_neuronpedia():
    save("neuronpedia", {"4521": "hello"})
    assert load_labels(CONFIG, WIDTH).text(4521) == "hello"
    save("autointerp", {"4521": "greeting or salutation"})
    labels = load_labels(CONFIG, WIDTH)
    assert (labels.source, labels.text(4521)) == ("autointerp", "greeting or salutation")


def test_the_order_holds_for_each_feature():
    save("neuronpedia", {"1": "one", "2": "two"})
    save("autointerp", {"2": "zwei", "3": "drei"})
    labels = load_labels(CONFIG, WIDTH)
    assert [labels.text(i) for i in range(4)] == ["feature_0", "one", "zwei", "drei"]
    assert [labels.source_of(i) for i in range(4)] == ["numeric", "neuronpedia", "autointerp", "autointerp"]


def test_bundled_labels_come_last():
    demo = load_preset("demo")
    bundled = load_labels(demo, 2048)
    first, second = sorted(bundled.texts)[:2]
    labels_path(demo, "autointerp").write_text(json.dumps({first: "made here"}))
    labels = load_labels(demo, 2048)
    assert (labels.text(first), labels.source_of(first)) == ("made here", "autointerp")
    assert (labels.text(second), labels.source_of(second)) == (bundled.text(second), "bundled")


def test_numeric_fallback():
    labels = load_labels(CONFIG, WIDTH)
    assert labels.source == "numeric"
    assert labels.text(4521) == "feature_4521"
    assert len(labels.all()) == 16384
    assert labels.all()["0"] == "feature_0"
    assert labels.detail_of(4521) is None


def test_holes_and_blanks_fall_back_one_by_one():
    save("autointerp", {"1": " articles ", "2": "  "})
    labels = load_labels(CONFIG, WIDTH)
    assert [labels.text(i) for i in range(3)] == ["feature_0", "articles", "feature_2"]


@pytest.mark.parametrize("damage", [b'{"1": "a"', b'{"1": "\xff"}', b'{"1": "\\ud800"}', b"[1]", b""])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path, damage):
    file = tmp_path / "labels.json"
    file.write_bytes(damage)
    with pytest.raises(UserError, match=r"labels\.json: not a JSON object from feature index.*move it elsewhere"):
        read_labels(file, WIDTH)


def test_details_belong_to_the_label_shown():
    save_labels(
        labels_path(CONFIG, "neuronpedia"),
        details("neuronpedia", {1: labelled("np one"), 2: labelled("np two"), 3: labelled("np three")}),
    )
    generated = {
        1: labelled("one", confidence="high"),
        2: LabelDetail(None, "dead", reason="never fired"),
        3: labelled("three", score=SCORE, replaced=True),
        4: LabelDetail(None, "thin", reason="fired twice"),
    }
    save_labels(labels_path(CONFIG, "autointerp"), details(features=generated))
    labels = load_labels(CONFIG, WIDTH, PAIR)
    assert labels.detail_of(1) == generated[1]
    assert (labels.text(2), labels.detail_of(2)) == ("np two", labelled("np two"))
    assert (labels.text(4), labels.detail_of(4)) == ("feature_4", generated[4])


def test_a_label_that_scored_too_low_is_replaced_by_the_number():
    save_labels(labels_path(CONFIG, "neuronpedia"), details("neuronpedia", {3: labelled("np three")}))
    flagged = labelled("three", score=SCORE, replaced=True)
    save_labels(labels_path(CONFIG, "autointerp"), details(features={3: flagged}))
    labels = load_labels(CONFIG, WIDTH, PAIR)
    assert (labels.text(3), labels.source_of(3), labels.detail_of(3)) == ("feature_3", "numeric", flagged)


def test_a_label_changed_by_hand_has_no_score():
    made = details(features={1: labelled("one", score=SCORE), 2: labelled("two", score=SCORE)})
    save_labels(labels_path(CONFIG, "autointerp"), made)
    save("autointerp", {"1": "mine"})
    labels = load_labels(CONFIG, WIDTH, PAIR)
    assert (labels.text(1), labels.source_of(1), labels.detail_of(1)) == ("mine", "by hand", None)
    assert (labels.text(2), labels.detail_of(2)) == ("feature_2", None)


@pytest.mark.parametrize(
    ("made_with", "said"),
    [
        (
            {"pair": dataclasses.replace(PAIR, model_sha256="c" * 64)},
            "another model .*sha256 cccccccc…; in use is .*aaaa",
        ),
        ({"pair": dataclasses.replace(PAIR, sae_sha256="c" * 64)}, "another SAE"),
        ({"pair": dataclasses.replace(PAIR, layer=19)}, r"another layer \(19; in use is 20\)"),
        ({"pair": dataclasses.replace(PAIR, width=65536), "width": 65536}, r"another width \(65536; in use is 16384\)"),
        ({"neuronpedia_model_id": "gemma-2-9b"}, r"another Neuronpedia id \(gemma-2-9b/20-gemmascope-res-16k; in use"),
        ({"neuronpedia_sae_id": "19-gemmascope-res-16k"}, "another Neuronpedia id"),
    ],
)
def test_labels_of_another_model_sae_or_width_are_refused(made_with, said, caplog):
    save_labels(labels_path(CONFIG, "autointerp"), details(features={1: labelled("one")}, **made_with))
    assert load_labels(CONFIG, WIDTH, PAIR).source == "numeric"
    assert re.search(rf"autointerp_details\.json: labels of .*{said}.*labels generate", caplog.text)


def test_neuronpedias_labels_of_another_width_are_refused(caplog):
    save_labels(labels_path(CONFIG, "neuronpedia"), details("neuronpedia", {1: labelled("one")}, width=65536))
    assert load_labels(CONFIG, WIDTH, PAIR).source == "numeric"
    assert re.search(r"another width \(65536; in use is 16384\).*labels pull --refresh", caplog.text)


def test_the_same_files_under_other_names_are_the_same_pair():
    save_labels(labels_path(CONFIG, "autointerp"), details(features={1: labelled("one")}))
    moved = dataclasses.replace(PAIR, model_id="/models/gemma", sae_id="/saes/params.npz")
    assert load_labels(CONFIG, WIDTH, moved).text(1) == "one"


def test_statistics_are_shown_without_labels_that_do_not_fit(capsys, caplog):
    demo = load_preset("demo")
    ids = {"neuronpedia_model_id": demo.neuronpedia_model_id, "neuronpedia_sae_id": demo.neuronpedia_sae_id}
    of_another = details(pair=dataclasses.replace(PAIR, width=2048), width=2048, features={1: labelled("one")}, **ids)
    save_labels(labels_path(demo, "autointerp"), of_another)
    assert cli.run(["calibrate", "show", "--config", "demo", "--top", "1"]) == 0
    assert "L0" in capsys.readouterr().out
    assert [record.message for record in caplog.records if "left aside" in record.message]


def test_a_label_that_was_known_to_be_by_hand_keeps_its_own_score():
    written = labelled("mine", score=SCORE, by_hand=True)
    save_labels(labels_path(CONFIG, "autointerp"), details(features={1: written}))
    labels = load_labels(CONFIG, WIDTH, PAIR)
    assert (labels.text(1), labels.source_of(1), labels.detail_of(1)) == ("mine", "by hand", written)


def test_broken_details_are_named(caplog):
    save("autointerp", {"1": "one"})
    details_path(labels_path(CONFIG, "autointerp")).write_text('{"source": "autointerp"}')
    assert load_labels(CONFIG, WIDTH, PAIR).source == "numeric"
    assert re.search(r"_autointerp_details\.json: .*missing", caplog.text)


@pytest.mark.parametrize(
    "content",
    [
        b'{"16384": "x"}',
        b'{"-1": "x"}',
        b'{"a": "x"}',
        b'{"1": 2}',
        b"[]",
        b"",
        b"{",
        b'{"1": "\xff"}',
        b'{"1": "\\ud83d"}',
    ],
)
def test_what_cannot_be_its_labels_is_refused(tmp_path, content):
    path = tmp_path / "labels.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"labels\.json"):
        read_labels(path, 16384)


@pytest.mark.parametrize("key", ["x", "1.5", "", " 1", "1234567890"])
def test_a_key_that_is_no_feature_is_named(tmp_path, key):
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"1": "one", key: "another"}))
    with pytest.raises(UserError, match=f"key {key!r} is not a feature number"):
        read_labels(path, WIDTH)


def test_odd_characters_survive(tmp_path):
    path = tmp_path / "labels.json"
    odd = 'quote " newline \n separator \u2028 <script>alert(1)</script> 🌍'
    path.write_text(json.dumps({"7": odd}), encoding="utf-8")
    assert read_labels(path, 8) == {7: odd}
