"""Details of labels: written and read again, the simple file beside them, refusal of what cannot be."""

import dataclasses
import json

import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.features.label_details import (
    Control,
    LabelDetail,
    LabelDetails,
    Score,
    WrongSequence,
    details_path,
    read_details,
    save_labels,
)
from neuroscope_jax.identity import PairIdentity

PAIR = PairIdentity("org/model", "a" * 64, "org/sae/layer_1", "b" * 64, width=8, layer=1)
SCORE = Score("scored", 0.58, 0.66, 0.5, 0.06, 50, 20, 10, 0, "judge-1", [WrongSequence("a line\n“q” 🌍", True)])
DETAILS = LabelDetails(
    source="autointerp",
    pair=PAIR,
    neuronpedia_model_id="model",
    neuronpedia_sae_id="sae",
    width=8,
    made="2030-01-02T03:04:05+00:00",
    version="1.0",
    labeler="labeller-1",
    prompt_version="1",
    run="run",
    control=Control(0.51, 2),
    features={
        7: LabelDetail("greetings", "labelled", confidence="high", pattern="says hello", score=SCORE),
        2: LabelDetail("vague", "labelled", score=SCORE, replaced=True),
        3: LabelDetail(None, "dead", reason="never fired"),
        5: LabelDetail("mine", "labelled", by_hand=True),
    },
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "labels" / "model_sae_autointerp.json"


def test_what_is_saved_is_read_again(path):
    save_labels(path, DETAILS)
    assert read_details(details_path(path)) == DETAILS


def test_the_simple_file_holds_the_labels_to_be_shown(path):
    save_labels(path, DETAILS)
    assert json.loads(path.read_text()) == {"5": "mine", "7": "greetings"}


def test_no_other_file_is_left(path):
    save_labels(path, DETAILS)
    assert {p.name for p in path.parent.iterdir()} == {path.name, "model_sae_autointerp_details.json"}


@pytest.mark.parametrize(("accuracy", "low"), [(0.5999, True), (0.6, False), (None, False)])
def test_low_confidence_is_a_score_below_0_60(accuracy, low):
    assert dataclasses.replace(SCORE, balanced_accuracy=accuracy).low_confidence is low


@pytest.mark.parametrize(
    ("control", "said"),
    [
        (
            Control(0.514, 20, 0.023),
            "20 labels tried on features they were not written for scored 0.51 ± 0.02 (0.5 ex",
        ),
        (Control(0.51, 4, 0.1), "4 labels tried on features they were not written for scored 0.51, too few to tell ("),
        (Control(0.5, 1), "1 label tried on a feature it was not written for scored 0.50, too few to tell (0.5 expec"),
        (Control(None, 0), "no labels could be tried on features they were not written for"),
    ],
)
def test_the_control_in_words(control, said):
    assert str(control).startswith(said)


def change(data, place, value):
    *above, last = place
    for name in above:
        data = data[name]
    data[last] = value


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (["features", "8"], {"label": "x", "status": "labelled"}, "8.*width is 8"),
        (["features", "7", "confidence"], "sure", "confidence"),
        (["features", "7", "score", "tpr"], 1.5, "tpr"),
        (["pair"], None, "pair is null"),
        (["pair", "width"], 16, r"pair\.width is 16"),
        (["width"], 0, "width"),
    ],
)
def test_what_cannot_be_is_refused_by_file_and_field(path, place, value, said):
    save_labels(path, DETAILS)
    file = details_path(path)
    data = json.loads(file.read_text())
    change(data, place, value)
    file.write_text(json.dumps(data))
    with pytest.raises(UserError, match=rf"(?s)model_sae_autointerp_details\.json: .*{said}"):
        read_details(file)


def test_an_earlier_pair_of_files_stays_where_a_new_one_cannot_be_written(path, monkeypatch):
    save_labels(path, DETAILS)
    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    monkeypatch.setattr("neuroscope_jax.files._to_disk", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(UserError, match="No space left"):
        save_labels(path, dataclasses.replace(DETAILS, features={}))
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before
