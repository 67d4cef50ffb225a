"""The commands' flags, the pass they reuse or run, and runs in processes of their own, killed and gone on with."""

import collections
import dataclasses
import json
import math
import os
import queue
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from neuroscope_jax import platforms
from neuroscope_jax.autointerp import reuse
from neuroscope_jax.autointerp.reuse import SAMPLES, Wanted, pass_of
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.calibrate import Options
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.errors import UserError
from tests.autointerp import stand_in
from tests.autointerp.asking import KEY, served
from tests.autointerp.commanding import Demo, done, refused, script
from tests.running_server import running

PROGRAM = [sys.executable, "-m", "neuroscope_jax", "labels"]
SECONDS = 120


@pytest.fixture
def demo(demo_config: NeuroscopeConfig, demo_pass: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    return Demo(demo_config, demo_pass, tmp_path / "cache", monkeypatch)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate", "--samples", "0"], "--samples 0: expected from 1 to 16,777,215"),
        (["generate", "--seed", "-1"], "--seed -1: expected from 0 to "),
        (["generate", "--examples-per-feature", "21"], "--examples-per-feature 21: expected from 1 to 20"),
        (["generate", "--concurrency", "0"], "--concurrency 0: expected 1 to "),
        (["generate", "--max-usd", "0"], "--max-usd 0.0: expected more than 0"),
        (["generate", "--max-usd", "1e400"], "--max-usd: expected a number of reasonable size"),
        (["generate", "--timeout", "9" * 400], "--timeout: expected a number of reasonable size"),
        (["generate", "--samples", "9" * 5000], "--samples: expected a whole number of reasonable size"),
        (["generate", "--max-usd", "1e308"], "--max-usd 1e+308: expected more than 0 and at most"),
        (["score", "--labels", "."], "--labels .: a folder; expected a file"),
        (["generate", "--labeler", "my-model"], "the prices of my-model are not known here"),
        (["generate", "--prices", "1"], "--prices '1': expected two numbers"),
        (["generate", "--replace-flagged"], "--replace-flagged goes by the scores: give --score too"),
        (["generate", "--calibration-path", "x.json", "--samples", "9"], "--calibration-path names a finished pass"),
        (["generate", "--lable", "x"], "unknown flag --lable; did you mean --labeler?"),
        (["generate", "--features", "1,x"], "--features '1,x': 'x' is no feature"),
        (["generate", "--features", "2048"], "--features '2048': there is no feature 2048"),
        (["generate", "--output", "labels.txt"], "labels.txt: expected a name that ends in .json"),
        (["score"], "--labels is missing, as in --labels labels.json"),
        (["score", "--labels", "x.json", "--samples", "9"], "unknown flag --samples"),
    ],
)
def test_mistakes_are_told_in_one_line_before_any_work(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr(platforms, "choose", lambda platform: None)
    monkeypatch.setattr(reuse, "calibrate", pytest.fail)
    assert refused(*words).startswith(said)


@pytest.mark.parametrize("command", ["generate", "score"])
def test_help_explains_every_flag_and_loads_nothing(command: str) -> None:
    program = (
        "import sys; from neuroscope_jax import cli; cli.run(sys.argv[1:]); "
        "print(sorted({'jax', 'anthropic', 'flax'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", program, "labels", command, "--help"]
    text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    *lines, loaded = text.splitlines()
    assert loaded == "[]"
    flags = [i for i, line in enumerate(lines) if line.startswith("  --")]
    assert {"--config", "--features", "--max-usd"} <= {lines[i].split()[0] for i in flags}
    assert all(re.match(r" {8}\w", lines[i + 1]) for i in flags)
    assert "[claude-haiku-4-5-20251001]" in text


def test_serving_does_not_bring_the_client_library_in() -> None:
    program = "import sys, server.__main__, neuroscope_jax.cli; print('anthropic' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=SECONDS)
    assert found.stdout == "False\n"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The passes that were asked for; none is run."""
    made: list[Options] = []
    monkeypatch.setattr(reuse, "calibrate", lambda config, options: made.append(options))
    return made


@pytest.fixture
def pair(demo: Demo) -> setup.Pair:
    return setup.find(demo.config)


def found(pair: setup.Pair, wanted: Wanted) -> Files:
    return pass_of(pair, setup.identity(pair, 2048), wanted)


def test_a_finished_pass_is_reused_whatever_it_is_where_nothing_is_wanted(
    demo: Demo, pair: setup.Pair, passes: list[Options], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert found(pair, Wanted()) == demo.files
    assert passes == []
    assert "300 samples of demo, seed 0, made " in caplog.text


def test_a_finished_pass_is_reused_where_it_is_the_one_wanted(
    demo: Demo, pair: setup.Pair, passes: list[Options]
) -> None:
    for wanted in (Wanted(samples=300), Wanted(samples=300, seed=0)):
        assert found(pair, wanted) == demo.files
    assert passes == []


@pytest.mark.parametrize(
    "wanted", [Wanted(samples=299), Wanted(samples=300, seed=1), Wanted(seed=0), Wanted("texts.txt", 300)]
)
def test_another_pass_than_the_finished_one_is_run(
    demo: Demo, pair: setup.Pair, wanted: Wanted, passes: list[Options], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("one text", encoding="utf-8")
    assert found(pair, wanted) == demo.files
    (options,) = passes
    assert (options.corpus_path, options.samples) == (wanted.corpus_path, wanted.samples or SAMPLES)
    assert (options.seed, options.output) == (wanted.seed or 0, demo.files)


def test_without_a_finished_pass_of_this_very_pair_one_is_run(
    demo: Demo, pair: setup.Pair, passes: list[Options]
) -> None:
    other = dataclasses.replace(pair.config, sae_input_norm="rms")
    found(dataclasses.replace(pair, config=other), Wanted())
    place = json.loads(demo.files.stats.read_text())
    place["provenance"]["pair"]["model_sha256"] = "0" * 64
    demo.files.stats.write_text(json.dumps(place))
    found(pair, Wanted())
    demo.files.windows.unlink()
    found(pair, Wanted())
    assert [options.samples for options in passes] == [SAMPLES] * 3


def test_a_named_pass_has_to_be_of_the_pair(demo: Demo, pair: setup.Pair, passes: list[Options]) -> None:
    named = dataclasses.replace(pair, config=dataclasses.replace(pair.config, calibration_path=str(demo.files.stats)))
    assert found(named, Wanted()) == demo.files
    place = json.loads(demo.files.stats.read_text())
    place["provenance"]["pair"]["model_sha256"] = "0" * 64
    demo.files.stats.write_text(json.dumps(place))
    with pytest.raises(UserError, match="statistics of another model"):
        found(named, Wanted())
    assert passes == []


@pytest.mark.slow
def test_a_killed_run_goes_on_and_asks_nothing_twice(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while it asks for labels and, gone on with, while it asks for scores."""
    words = ("generate", "--features", "0-29", "--score")
    answers: collections.Counter[str] = collections.Counter()
    requests: queue.Queue[None] = queue.Queue()

    def until(count: float) -> stand_in.Script:
        """Answers so many requests and keeps the others waiting."""
        last = answers.total() + count

        def reply(request: stand_in.Request) -> stand_in.Reply:
            requests.put(None)
            if answers.total() == last:
                return stand_in.hang()
            answers[stand_in.prompt(request)] += 1
            return stand_in.good(request)

        return reply

    def killed_after(count: int) -> None:
        server.script = until(count)
        command = [*PROGRAM, *words, "--config", "demo", "--concurrency", "8"]
        with subprocess.Popen(command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, stderr=subprocess.DEVNULL) as process:
            try:
                for _ in range(count + 8):
                    requests.get(timeout=SECONDS)
            finally:
                process.kill()
        assert process.returncode == -signal.SIGKILL

    with served(monkeypatch) as server:
        killed_after(10)
        assert not demo.path.exists()
        killed_after(60)
        assert demo.path.exists()
        server.script = until(math.inf)
        out = done(*words)
    assert set(answers.values()) == {1}
    assert f"asked: {len(answers) - 70} calls, 70 answered earlier" in out
    assert "failed: none" in out


@pytest.mark.slow
def test_from_nothing_to_labels_that_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corpus pass, labels, scores and the server, each as its command."""
    cache = tmp_path / "cache"
    environment = {"NEUROSCOPE_CACHE": str(cache), "JAX_PLATFORMS": "cpu"}
    words = ["generate", "--config", "demo", "--samples", "100", "--features", "0-19", "--score"]
    with served(monkeypatch, script(lambda prompt: "greeting or salutation")):
        made = subprocess.run(
            [*PROGRAM, *words], env=os.environ | environment, capture_output=True, text=True, timeout=SECONDS
        )
    assert made.returncode == 0, made.stderr
    assert KEY not in made.stderr + made.stdout
    place = cache / "labels" / "demo_3-demo-res-2k_autointerp.json"
    labels = json.loads(place.read_text())
    assert len(labels) >= 10
    assert f"labelled: {len(labels)} of 20 features" in made.stdout
    with running("demo", cache) as server:
        shown = httpx.get(f"{server.features_url}/v1/features/labels?detail=1").json()
    assert shown["width"] == 2048
    for feature in labels:
        assert shown["labels"][feature] == "greeting or salutation"
    assert shown["labels"]["20"] != "greeting or salutation"
