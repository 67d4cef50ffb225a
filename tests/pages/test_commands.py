"""`labels report` and `labels show` as a person runs them."""

import dataclasses
import io
import json
import re
import sys

import msgspec
import numpy as np
import pytest

from neuroscope_jax.cli import run
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus import shading as shading_module
from neuroscope_jax.features.label_details import details_path, read_details
from neuroscope_jax.pages import terminal
from tests.features.measured import TOKENS, WIDTH, activations
from tests.pages.conftest import called


@pytest.fixture
def ran(config_file, capsys):
    """Runs a command on the pair: (exit status, stdout, stderr)."""

    def with_flags(*argv: str) -> tuple[int, str, str]:
        status = run(["labels", *argv, "--config", str(config_file)])
        return status, *capsys.readouterr()

    return with_flags


def test_report(ran, files, labelled, tmp_path):
    out = tmp_path / "report"
    status, said, _ = ran("report", "--plain", "--out", str(out))
    assert status == 0
    assert f"{WIDTH} features" in said
    assert str(out / "index.html") in said
    (columns,) = called(out / "data" / "index.js")
    assert columns["id"] == list(range(WIDTH))
    status, said, _ = ran("report", "--plain", "--out", str(out), "--features", "9,3-4")
    assert status == 0
    (columns,) = called(out / "data" / "index.js")
    assert columns["id"] == [3, 4, 9]


@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        (["--out", "{tmp}/full"], 1, "--out .*full: holds mine.txt"),
        (["--out", "{tmp}/full/mine.txt"], 1, "mine.txt: is a file"),
        (["--out", "{tmp}/new", "--features", "3,99"], 2, "there is no feature 99; the SAE has features 0 to 47"),
        (["--out", "{tmp}/new", "--labels", "{tmp}/gone.json"], 1, "gone.json: cannot be read: No such file"),
        (["--out", "{tmp}/new", "--calibration-path", "{tmp}/gone.json"], 1, "gone.json: cannot be read"),
        ([], 2, "--out is missing, as in --out report/"),
    ],
)
def test_mistakes_are_named(ran, files, labelled, tmp_path, flags, status, said):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    found, out, error = ran("report", "--plain", *(flag.format(tmp=tmp_path) for flag in flags))
    assert (found, out) == (status, "")
    assert re.search(said, error)
    assert "Traceback" not in error
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".new*"))


def test_without_a_pass_there_is_no_report(ran, labelled, tmp_path):
    status, _, error = ran("report", "--out", str(tmp_path / "new"))
    assert status == 1
    assert "_stats.json there are none. Find them with `neuroscope_jax calibrate run`" in error


def test_labels_of_another_pair_are_left_aside(ran, files, labelled, tmp_path, caplog):
    details = read_details(details_path(labelled))
    pair = dataclasses.replace(details.pair, sae_sha256="f" * 64)
    details_path(labelled).write_bytes(msgspec.json.encode(dataclasses.replace(details, pair=pair)))
    status, said, _ = ran("show", "--features", "1")
    assert status == 0
    assert said.startswith("1  feature_1\n")
    assert "Claude" not in said
    assert "labels: left aside: " in caplog.text
    assert "another SAE" in caplog.text
    assert ran("report", "--plain", "--out", str(tmp_path / "new"))[0] == 0
    (columns,) = called(tmp_path / "new" / "data" / "index.js")
    assert not any(columns["label"])
    status, _, error = ran("show", "--features", "1", "--labels", str(labelled))  # asked for by name
    assert status == 1
    assert "another SAE" in error


def test_show(ran, files, labelled):
    status, said, _ = ran("show", "--features", "1,6,0,8")
    assert status == 0
    one, taken_back, dead, unlabelled = said.strip("\n").split("\n\n")
    fired = int((activations()[:, 1] > 0).sum())
    assert one.startswith("1  \"quotes\" 'and' &amp; <img")
    assert "Claude (labeller-1), made here, 2026" in one
    assert "high (labeler's own)" in one
    recognised = "judge-1 recognised 60 % of the texts where it fires and 50 % of those where it does not"
    assert f"0.55 ± 0.07, low score; {recognised}\n" in one
    assert f"{fired / TOKENS:.3%}, {fired:,} of {TOKENS} tokens" in one
    assert one.count("<<") == 2  # top and random, not held out
    assert "↵" in one
    assert "none; label dropped (score 0.55, below 0.60): 'taken back'\n" in taken_back
    assert "confidence" not in taken_back
    assert taken_back.startswith("6  feature_6")
    assert "never fired in 400 tokens" in dead
    assert "source        none\n" in unlabelled


def test_show_obeys_no_label(ran, files, labelled):
    _, said, _ = ran("show", "--features", "0-9")
    assert "[U+001B][31m red" in said
    assert "[U+202E]override" in said
    assert all(c.isprintable() or c == "\n" for c in said)


def test_show_knows_what_there_is(ran, config_file, labelled):
    status, said, error = ran("show", "--features", "1")
    assert status == 1
    assert "does not say how many features" in error  # neither the SAE nor a pass is here
    config_file.write_text(config_file.read_text().replace("3-res-48", "3-res-16k"))
    status, said, _ = ran("show", "--features", "4521")
    assert status == 0
    assert "firing rate   not known; `neuroscope_jax calibrate run` measures it" in said
    assert "examples      none here" in said


def test_a_label_file_by_name(ran, files, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"3": "my own words"}))
    _, said, _ = ran("show", "--features", "3", "--labels", str(path))
    assert said.startswith("3  my own words\n  source        mine.json\n")
    assert ran("report", "--plain", "--out", str(tmp_path / "out"), "--labels", str(path))[0] == 0
    (columns,) = called(tmp_path / "out" / "data" / "index.js")
    assert (columns["label"][3], columns["source"][3]) == ("my own words", "mine.json")


def test_a_label_changed_by_hand(ran, files, labelled, tmp_path):
    texts = json.loads(labelled.read_text()) | {"1": "my own words", "8": "added"}
    labelled.write_text(json.dumps(texts))
    out = tmp_path / "out"
    for named in ([], ["--labels", str(labelled)]):
        _, said, _ = ran("show", "--features", "1,8,3", *named)
        changed, added, kept = said.split("\n\n")
        assert changed.startswith("1  my own words\n  source        by hand\n  score         not scored\n")
        assert added.startswith("8  added\n  source        by hand\n")
        assert "Claude (labeller-1), made here" in kept
        assert ran("report", "--plain", "--out", str(out), *named)[0] == 0
        (columns,) = called(out / "data" / "index.js")
        sources = {1: "by hand", 3: "Claude", 8: "by hand"}
        assert {i: columns["source"][i] for i in sources} == sources
        assert (columns["confidence"][1], columns["score"][1], columns["flags"][1] & 0b11000) == (None, None, 0)
        _, content = called(out / "data" / "00000.js")
        assert (content["features"][1]["source"], content["features"][1]["label"]) == ("by hand", None)


@pytest.mark.parametrize(
    ("tty", "environment", "coloured"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colours_only_on_a_terminal_that_wants_them(everything, monkeypatch, tty, environment, coloured):
    for name, value in {"NO_COLOR": "", "TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: tty)
    shown = terminal.as_text(everything, [1])
    assert ("\x1b[1;7m" in shown, "<<" in shown) == (coloured, not coloured)
    assert shown.count("\x1b[1;7m") == shown.count("\x1b[0m")


def test_a_terminal_without_the_signs_gets_something_else(everything, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    terminal.for_stdout(terminal.as_text(everything, [1, 4])).encode("ascii")


def test_shading_is_asked_for_the_features_of_the_report(ran, files, shading, tokenizer, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(setup, "find", lambda config: type("Pair", (), {"tokenizer": tokenizer}))
    monkeypatch.setattr(shading_module, "shading", lambda config, files, features: asked.append(features) or shading)
    for chosen in ([], ["--features", "5,2"]):
        assert ran("report", "--out", str(tmp_path / "out"), *chosen)[0] == 0
    assert asked == [None, [2, 5]]
    (facts,) = called(tmp_path / "out" / "data" / "report.js")
    assert facts["shaded"]
    assert np.all(np.array(facts["edges"]) > 0)
