"""`labels score` on label files of every origin: what is scored, written, refused and said."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from neuroscope_jax.autointerp import label_file
from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.autointerp.sequences import Drawer, shortage
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.features.calibration import read_stats
from neuroscope_jax.features.label_details import (
    LabelDetail,
    details_path,
    read_details,
    save_labels,
)
from neuroscope_jax.features.labels import labels_path, load_labels
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER
from tests.autointerp import stand_in
from tests.autointerp.asking import MODEL, served
from tests.autointerp.commanding import Demo, done, refused, run, script


@pytest.fixture
def demo(demo_config: NeuroscopeConfig, demo_pass: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    return Demo(demo_config, demo_pass, tmp_path / "cache", monkeypatch)


@pytest.fixture(scope="module")
def drawn(demo_evidence: Evidence, tokenizer: ChatTokenizer) -> dict[int, int]:
    """Features with enough sequences to score a label on, and how many each has."""
    drawer = Drawer(demo_evidence.pool, tokenizer, demo_evidence.provenance.run)
    found = {f: drawer.of(demo_evidence.of(f)) for f in range(12)}
    return {f: len(sequences) for f, sequences in found.items() if shortage(sequences) is None}


@pytest.fixture(scope="module")
def dead(demo_evidence: Evidence) -> int:
    return int(np.flatnonzero(demo_evidence.stats.count == 0)[0])


@pytest.fixture
def by_hand(demo: Demo, drawn: dict[int, int], dead: int, tmp_path: Path) -> Path:
    """Labels of features that can be scored, one of a feature that cannot, and an empty one."""
    path = tmp_path / "mine.json"
    labels = {feature: f" label {feature} " for feature in drawn} | {dead: "vague", 2000: ""}
    path.write_text(json.dumps(labels))
    return path


def finding(*labels: str) -> stand_in.Script:
    """A judge that finds these labels in every text, and others in none."""

    def judge(prompt: str) -> dict[str, bool]:
        names = re.findall(r"^(s\d+): ", prompt, re.M)
        return dict.fromkeys(names, any(f"Name: {label}\n" in prompt for label in labels))

    return script(lambda prompt: "", judge)


def test_a_file_written_by_hand_gets_scores_beside_it(
    by_hand: Path, drawn: dict[int, int], dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = by_hand.read_bytes()
    with served(monkeypatch, finding(f"label {min(drawn)}")) as server:
        out = done("score", "--labels", str(by_hand))
    assert by_hand.read_bytes() == before
    assert f"written:\n{details_path(by_hand)}\n" in out
    details = read_details(details_path(by_hand))
    assert (details.labeler, details.prompt_version, details.run) == (None, None, None)
    scores = {feature: details.features[feature].score for feature in drawn}
    assert all(score.status == "scored" and score.judge == MODEL for score in scores.values())
    assert all(score.n_active + score.n_silent == drawn[f] for f, score in scores.items())
    one, other = list(drawn)[:2]
    assert (scores[one].tpr, scores[one].tnr) == (1, 0)
    assert (scores[other].tpr, scores[other].tnr) == (0, 1)
    assert {wrong.was_active for wrong in scores[other].wrong} == {True}
    assert details.control.n == len(drawn)
    unscored = details.features[dead].score
    assert (unscored.status, unscored.balanced_accuracy, unscored.n_active) == ("insufficient", None, 0)
    assert f"scored: {len(drawn)} labels, mean balanced accuracy 0.50; 1 with too few texts to score\n" in out
    assert f"\n{len(drawn)} labels score below 0.60; they stay in the file\n" in out
    assert f"\ncontrol: {details.control}\n" in out
    assert re.search(r"scored 0\.50 ± \d\.\d\d \(0\.5 expected by chance\)", str(details.control))
    assert f"{server.requests} calls" in out


def test_only_the_features_named_are_scored(
    by_hand: Path, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = list(drawn)[:2]
    with served(monkeypatch, finding()):
        out = done("score", "--labels", str(by_hand), "--features", str(other))
    details = read_details(details_path(by_hand))
    assert details.features[one] == LabelDetail(f"label {one}", "labelled", by_hand=True)
    assert details.features[other].score.balanced_accuracy == 0.5
    assert details.control is None
    assert "control: no labels could be tried" in out


def test_the_bundled_labels_of_the_demo(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "labels.json"
    shutil.copy(DEMO_FOLDER / "labels.json", copy)
    with served(monkeypatch, finding()):
        done("score", "--labels", str(copy), "--features", "0-9")
    assert demo.labels(copy) == demo.labels(DEMO_FOLDER / "labels.json")
    assert sum(detail.score is not None for detail in read_details(details_path(copy)).features.values()) >= 5


def test_fetched_labels_stay_fetched_labels(demo: Demo, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    feature, path = min(drawn), labels_path(demo.config, "neuronpedia")
    with served(monkeypatch, finding()):
        made = label_file.new(demo.config, read_stats(demo.files.stats)[1].pair)
        detail = LabelDetail("fetched", "labelled", type_name="np_acts", alternatives=3)
        save_labels(path, dataclasses.replace(made, source="neuronpedia", pair=None, features={feature: detail}))
        done("score", "--labels", str(path))
    details = read_details(details_path(path))
    assert (details.source, details.pair) == ("neuronpedia", None)
    assert dataclasses.replace(details.features[feature], score=None) == detail
    labels = load_labels(demo.config, 2048)
    assert labels.text(feature) == "fetched"
    assert labels.detail_of(feature).score.balanced_accuracy == 0.5


def test_flagged_labels_leave_the_file_that_was_generated(
    demo: Demo, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = label_file.new(demo.config, read_stats(demo.files.stats)[1].pair)
    labels = {f: LabelDetail(f"label {f}", "labelled") for f in drawn}
    save_labels(demo.path, dataclasses.replace(made, features=labels))
    path = demo.path
    with served(monkeypatch, finding()) as server:
        done("score", "--labels", str(path))
        assert len(json.loads(path.read_text())) == len(drawn)
        first = server.requests
        out = done("score", "--labels", str(path), "--replace-flagged")
        assert server.requests == first
    assert f"\n{len(drawn)} labels scored below 0.60 and were taken out of the file\n" in out
    assert json.loads(path.read_text()) == {}
    details = read_details(details_path(path))
    assert all(details.features[f].replaced and details.features[f].label for f in drawn)


def test_flagged_labels_never_leave_another_file(by_hand: Path, demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    before = by_hand.read_bytes()
    with served(monkeypatch, finding()) as server:
        line = refused("score", "--labels", str(by_hand), "--replace-flagged")
        assert server.requests == 0
    assert line.startswith(
        f"--replace-flagged takes labels out of the file that `labels generate` writes only ({demo.path}"
    )
    assert f"; {by_hand} stays as it is" in line
    assert by_hand.read_bytes() == before


def test_answers_that_fail_are_counted_not_scored(
    by_hand: Path, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    feature = max(drawn, key=lambda f: drawn[f])
    with served(monkeypatch, finding()) as server:
        good, refusals = server.script, iter([stand_in.refusal()])
        server.script = lambda request: next(refusals, None) or good(request)
        out = done("score", "--labels", str(by_hand), "--features", str(feature))
    score = read_details(details_path(by_hand)).features[feature].score
    assert (score.status, score.n_failed) == ("scored", 10)
    assert "texts without an answer: 10" in out


def test_a_dry_run_shows_a_question_and_leaves_nothing(
    demo: Demo, by_hand: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch) as server:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        out = done("score", "--labels", str(by_hand), "--dry-run")
        assert not server.headers
    assert "Name: label " in out
    assert not (demo.cache / "labels").exists()
    assert {path.name for path in by_hand.parent.iterdir()} == {by_hand.name, demo.cache.name}
    assert not details_path(by_hand).exists()


def test_batches(by_hand: Path, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, finding()) as server:
        out = done("score", "--labels", str(by_hand), "--batch")
        assert server.requests == 0
        assert len(server.batches.sent) == 1
    assert f"scored: {len(drawn)} labels, mean balanced accuracy 0.50" in out


def test_what_cannot_be_scored_is_said_in_one_line(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "labels.json"
    with served(monkeypatch) as server:
        assert refused("score", "--labels", str(path)).startswith(f"--labels {path}: no such file")
        path.write_text("[1]")
        assert refused("score", "--labels", str(path)).startswith(f"{path}: not a JSON object from feature index")
        path.write_text('{"2048": "x"}')
        assert refused("score", "--labels", str(path)).startswith(f"{path}: labels feature 2048, but this SAE has 2048")
        path.write_text('{"3": "x"}')
        assert "holds no label of the features asked for" in refused("score", "--labels", str(path), "--features", "4")
        assert "no feature 9999" in refused("score", "--labels", str(path), "--features", "9999")
        for file in demo.files.all():
            file.unlink()
        assert "neuroscope_jax calibrate run" in refused("score", "--labels", str(path))
        assert server.requests == 0


def test_a_file_of_another_pair_is_told_before_the_pair_is_looked_for(
    by_hand: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, finding()):
        done("score", "--labels", str(by_hand), "--features", "0-2")
        place = details_path(by_hand)
        place.write_text(json.dumps(json.loads(place.read_text()) | {"neuronpedia_model_id": "gemma-2-2b"}))
        monkeypatch.setattr(setup, "find", pytest.fail)
        line = refused("score", "--labels", str(by_hand))
    assert line.startswith(f"--labels {by_hand}: labels of gemma-2-2b/3-demo-res-2k, but the pair in use is demo/")


def test_labels_of_another_pass_may_have_seen_the_texts(
    demo: Demo, by_hand: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, finding()):
        done("score", "--labels", str(by_hand), "--features", "0-2")
        assert "may have seen" not in caplog.text
        place = details_path(by_hand)
        place.write_text(json.dumps(json.loads(place.read_text()) | {"run": "another"}))
        done("score", "--labels", str(by_hand), "--features", "0-2")
    assert "made from pass another" in caplog.text
    assert "may have seen" in caplog.text


def test_texts_that_stay_are_not_touched(demo: Demo, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = list(drawn)[:2]
    with served(monkeypatch, finding()) as server:
        server.script = script(lambda prompt: "some label")
        done("generate", "--features", f"{one},{other}")
        demo.path.write_text(f'{{"{one}": "some label", "{other}": " caf\\u00e9 \\/ ", "2000": ""}}')
        server.script = finding()
        done("score", "--labels", str(demo.path), "--replace-flagged")
    text = demo.path.read_text()
    assert f'"{other}": " caf\\u00e9 \\/ "' in text
    assert list(json.loads(text)) == [str(other), "2000"]


def test_scores_are_not_lost_to_a_run_without_answers(
    by_hand: Path, drawn: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    feature = min(drawn)
    words = ("score", "--labels", str(by_hand), "--features", str(feature))
    with served(monkeypatch, finding()) as server:
        done(*words)
        before = read_details(details_path(by_hand)).features[feature]
        server.script = lambda request: stand_in.error(400, "invalid_request_error", "model is odd\x1b[2J")
        status, out, err = run(*words, "--judge", "claude-sonnet-5-5")
    assert before.score.status == "scored"
    assert read_details(details_path(by_hand)).features[feature] == before
    assert status == 1
    assert "  400 invalid_request_error: (model is odd[U+001B][2J)\n" in out
    assert err.startswith("no question for scores got an answer of the model")
