"""`labels generate` on the demo pair against the stand-in: what is asked, written, kept and said."""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neuroscope_jax.autointerp import reuse
from neuroscope_jax.autointerp.evidence import Evidence, FeatureEvidence
from neuroscope_jax.autointerp.labelling import FEWEST
from neuroscope_jax.autointerp.prompts import label_question
from neuroscope_jax.autointerp.sequences import Drawer, shortage
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.features.label_details import LabelDetail, details_path
from neuroscope_jax.features.labels import load_labels
from neuroscope_jax.models.chat import ChatTokenizer
from tests.autointerp import stand_in, stand_in_batches
from tests.autointerp.asking import MODEL, served
from tests.autointerp.commanding import Demo, done, is_score, refused, run, script
from tests.autointerp.truth import truthful

Labels = dict[str, int]  # prompts of the features' label questions


@pytest.fixture
def demo(demo_config: NeuroscopeConfig, demo_pass: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    return Demo(demo_config, demo_pass, tmp_path / "cache", monkeypatch)


@pytest.fixture(scope="module")
def asked(demo_evidence: Evidence) -> Labels:
    """The question that each feature with enough examples is labelled by."""
    found = (demo_evidence.of(feature) for feature in range(60))
    return {label_question(e, 20).prompt: e.feature for e in found if len(e.top) >= FEWEST}


@pytest.fixture(scope="module")
def scorable(demo_evidence: Evidence, tokenizer: ChatTokenizer, asked: Labels) -> list[int]:
    """Features with enough sequences to score a label on."""
    drawer = Drawer(demo_evidence.pool, tokenizer, demo_evidence.provenance.run)
    return [f for f in asked.values() if shortage(drawer.of(demo_evidence.of(f))) is None]


def numbers(features: list[int]) -> str:
    return ",".join(map(str, features))


def test_labels_come_from_the_examples_of_their_feature(
    demo: Demo, asked: Labels, demo_evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = int(np.flatnonzero(demo_evidence.stats.count == 0)[0])
    thin = next(f for f in demo_evidence.features() if len(demo_evidence.of(f).top) < FEWEST)
    labelled = sorted(asked.values())[:30]
    with served(monkeypatch, script(lambda prompt: f"topic {asked[prompt]}")) as server:
        out = done("generate", "--features", numbers([thin, dead, *labelled]))
        assert server.requests == len(labelled)
    assert demo.labels() == {feature: f"topic {feature}" for feature in labelled}
    details = demo.details
    run, tokens = demo_evidence.provenance.run, demo_evidence.stats.tokens
    assert (details.labeler, details.run, details.source) == (MODEL, run, "autointerp")
    assert details.pair.misfits(setup.identity(setup.find(demo.config), 2048)) == []
    assert set(details.features) == {thin, dead, *labelled}
    one = details.features[labelled[0]]
    assert (one.status, one.confidence, one.pattern, one.model) == ("labelled", "medium", "they share it", MODEL)
    assert details.features[dead] == LabelDetail(None, "dead", reason=f"never fired in {tokens:,} tokens")
    assert details.features[thin].status == "thin"
    assert re.fullmatch(r"has [1-4] examples, at least 5 are needed", details.features[thin].reason)
    assert "labelled: 30 of 32 features; confidence (labeler's own): 0 high, 30 medium, 0 low\n" in out
    assert "not asked about: 1 that never fired, 1 with fewer than 5 examples\nfailed: none\n" in out
    assert "30 calls, 0 answered earlier" in out
    assert out.endswith(f"written:\n{demo.path}\n{details_path(demo.path)}\n")


def test_what_is_written_is_what_the_loader_shows(demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    feature = min(asked.values())
    before = load_labels(demo.config, 2048)
    assert before.source_of(feature) == "bundled"
    with served(monkeypatch, script(lambda prompt: "greeting or salutation")):
        done("generate", "--features", str(feature))
    pair = setup.find(demo.config)
    labels = load_labels(demo.config, 2048, setup.identity(pair, 2048))
    assert (labels.text(feature), labels.source_of(feature)) == ("greeting or salutation", "autointerp")
    assert labels.detail_of(feature).confidence == "medium"
    assert labels.text(feature + 1) == before.text(feature + 1)


def test_a_judge_that_knows_the_truth_tells_labels_from_shuffled_ones(
    demo: Demo, asked: Labels, scorable: list[int], tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = truthful(demo.config, tokenizer)
    features = scorable[:8]
    others = dict(zip(features, [*features[1:], features[0]], strict=True))
    with served(monkeypatch, script(lambda prompt: f"topic {asked[prompt]}", judge)):
        out = done("generate", "--features", numbers(features), "--score")
        true = demo.details
        shuffled = demo.cache / "shuffled.json"
        shuffled.write_text(json.dumps({f: f"topic {other}" for f, other in others.items()}))
        out_shuffled = done("score", "--labels", str(shuffled))
    mean = np.mean([true.features[f].score.balanced_accuracy for f in features])
    assert mean > 0.7
    assert f"scored: 8 labels, mean balanced accuracy {mean:.2f}; 0 with too few texts to score" in out
    assert true.control.n == 8
    assert true.control.balanced_accuracy < 0.7
    assert abs(float(re.search(r"scored: 8 labels, mean balanced accuracy (\S+);", out_shuffled)[1]) - 0.5) < 0.1


def test_failures_of_single_features_are_listed_by_kind(
    demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = sorted(asked.values())[:12]
    bad = {
        features[0]: stand_in.refusal(),
        features[1]: stand_in.cut_off(),
        features[2]: stand_in.message("not JSON"),
        features[3]: stand_in.answer({"label": "no pattern"}),
        features[4]: "This feature activates on words",
        features[5]: "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        features[6]: stand_in.refusal(),
    }
    with served(monkeypatch, script(lambda prompt: bad.get(asked[prompt], "a fine label"))):
        out = done("generate", "--features", numbers(features))
    assert demo.labels() == dict.fromkeys(features[7:], "a fine label")
    assert all(demo.details.features[f].status == "failed" for f in features[:7])
    assert demo.details.features[features[0]].reason == "refusal"
    assert "fewer than 15" in demo.details.features[features[5]].reason
    assert "labelled: 5 of 12 features" in out
    assert "failed: 7\n" in out
    assert f"\n  2 refusal: {features[0]}, {features[6]}\n" in out
    assert f"\n  1 cut off: {features[1]}\n" in out
    assert f"\n  1 wrong keys: {features[3]}\n    the first: pattern, confidence missing\n" in out
    assert f"\n  1 label speaks of the feature, not of what it stands for: {features[4]}\n" in out


def test_retry_failed_asks_again_only_where_the_label_was_of_no_use(
    demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = sorted(asked.values())[:5]
    chosen = numbers(features)
    bad = {features[0]: stand_in.refusal(), features[1]: "This feature fires on words"}
    with served(monkeypatch, script(lambda prompt: bad.get(asked[prompt], "first"))) as server:
        done("generate", "--features", chosen)
        server.script = script(lambda prompt: "second")
        assert "0 calls, 5 answered earlier" in done("generate", "--features", chosen)
        assert "2 calls, 3 answered earlier" in done("generate", "--features", chosen, "--retry-failed")
    assert demo.labels() == dict(zip(features, ["second", "second", "first", "first", "first"], strict=True))


def test_a_refused_key_ends_the_run_at_once_with_one_message(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(
        monkeypatch, lambda request: stand_in.error(401, "authentication_error", "invalid x-api-key")
    ) as server:
        line = refused("generate", "--features", "0-59", "--concurrency", "4")
    assert "401" in line
    assert "check ANTHROPIC_API_KEY" in line
    assert server.requests <= 4
    assert not demo.path.exists()


@pytest.mark.parametrize("words", [["generate", "--score"], ["score", "--labels", "any.json"]])
def test_a_missing_key_is_said_before_anything_is_loaded(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find", pytest.fail)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert refused(*words).startswith("ANTHROPIC_API_KEY is not set")


def test_a_dry_run_needs_no_key_and_sends_nothing(demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as server:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        out = done("generate", "--features", "0-59", "--score", "--dry-run")
        assert not server.headers
    calls, dollars = re.search(
        r"^([\d,]+) calls to make, 0 answered earlier, .*, \$([\d.]+) \(tokens counted by the model's", out, re.M
    ).groups()
    assert len(asked) < int(calls) < 8 * len(asked) + 7 * 20
    assert float(dollars) > 0
    assert next(iter(asked)) in out
    assert not demo.path.parent.exists()


def test_a_dry_run_leaves_nothing_behind(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch):
        before = sorted(tmp_path.rglob("*"))
        done("generate", "--features", "0-3", "--dry-run", "--output", str(tmp_path / "new" / "mine.json"))
        assert sorted(tmp_path.rglob("*")) == before
        assert "expected a name that ends in .json" in refused(
            "generate", "--features", "0-3", "--dry-run", "--output", str(tmp_path / "new" / "mine.txt")
        )


def test_the_estimate_is_what_is_asked(
    demo: Demo, asked: Labels, scorable: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = numbers(scorable[:10])
    with served(monkeypatch, script(lambda prompt: f"label {asked[prompt]}")) as server:
        told = done("generate", "--features", chosen, "--score", "--dry-run")
        done("generate", "--features", chosen, "--score")
        assert int(re.search(r"(\d+) calls", told)[1]) == pytest.approx(server.requests, abs=2)
        again = done("generate", "--features", chosen, "--score", "--dry-run")
    assert re.search(r"^0 calls", again, re.M)


@pytest.mark.parametrize("more", [[], ["--batch"]])
def test_a_run_over_the_budget_ends_before_the_first_call(
    demo: Demo, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch) as server:
        line = refused("generate", "--features", "0-59", "--max-usd", "0.01", *more)
        assert server.requests == 0
        assert not server.batches.sent
    assert line.startswith("--max-usd 0.01: this run is estimated at ")
    assert "$0.01 " not in line
    assert ("--batch" in line) == (more == [])
    assert not demo.path.exists()


def test_features_asked_for_alone_join_those_labelled_before(
    demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = sorted(asked.values())[:6]
    with served(monkeypatch, script(lambda prompt: f"first {asked[prompt]}")) as server:
        done("generate", "--features", numbers(features[:4]))
        by_hand = demo.labels() | {features[0]: "mine", 99: "mine too"}
        del by_hand[features[1]]
        demo.path.write_text(json.dumps(by_hand))
        server.script = script(lambda prompt: f"second {asked[prompt]}")
        done("generate", "--features", numbers(features[3:]), "--labeler", "claude-sonnet-5-5")
    assert demo.labels() == (
        {features[0]: "mine", 99: "mine too", features[2]: f"first {features[2]}"}
        | {f: f"second {f}" for f in features[3:]}
    )
    assert demo.details.features[features[2]].model == MODEL
    assert demo.details.features[features[3]].model == "claude-sonnet-5-5"
    assert demo.details.features[features[0]] == LabelDetail("mine", "labelled", by_hand=True)


@pytest.mark.parametrize("whole", [False, True])
def test_a_label_changed_by_hand_survives_a_run_that_covers_it(
    demo: Demo, asked: Labels, scorable: list[int], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = scorable[:3]
    if whole:  # the others of the SAE are taken out of the evidence
        monkeypatch.setattr(Evidence, "of", only(features))
    words = ["generate", "--score", "--replace-flagged", *([] if whole else ["--features", numbers(features)])]
    with served(monkeypatch, script(lambda prompt: f"label {asked[prompt]}")) as server:
        done("generate", "--features", numbers(features))
        demo.path.write_text(json.dumps(demo.labels() | {features[0]: "mine"}))
        requests = server.requests
        out = done(*words, "--labeler", "claude-sonnet-5-5")
        assert requests < server.requests
        assert "\nkept 1 label changed by hand\n" in out
        assert f"labelled: 2 of {'2,047' if whole else '2'} features" in out
        assert demo.labels() == {features[0]: "mine"}  # the others scored 0.5
        assert demo.details.features[features[0]] == LabelDetail("mine", "labelled", by_hand=True)
        again = done("score", "--labels", str(demo.path), "--replace-flagged")
    assert "1 label scores below 0.60; it stays in the file\n" in again
    assert demo.labels() == {features[0]: "mine"}
    assert demo.details.features[features[0]].score.low_confidence


def only(features: list[int]) -> Callable[[Evidence, int], FeatureEvidence]:
    """Evidence in which other features never fire."""
    of = Evidence.of
    silent = functools.partial(FeatureEvidence, count=0, top=[], random=[], held_out=[])
    return lambda self, feature: of(self, feature) if feature in features else silent(feature)


def test_a_label_changed_while_a_run_goes_on_survives(
    demo: Demo, asked: Labels, scorable: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = scorable[:3]

    def label(prompt: str) -> str:
        demo.path.write_text(json.dumps({one: "mine"}))
        return f"label {asked[prompt]}"

    def judge(prompt: str) -> dict[str, bool]:
        demo.path.write_text(json.dumps(demo.labels() | {two: "mine too"}))
        return dict.fromkeys(re.findall(r"^(s\d+): ", prompt, re.M), False)

    with served(monkeypatch, script(lambda prompt: f"label {asked[prompt]}")) as server:
        done("generate", "--features", str(one))
        server.script = script(label, judge)
        done("generate", "--features", numbers([one, two, three]), "--score", "--labeler", "claude-sonnet-5-5")
    assert demo.labels() == {one: "mine", two: "mine too", three: f"label {three}"}
    assert [demo.details.features[f].by_hand for f in (one, two, three)] == [True, True, False]
    assert [demo.details.features[f].score is None for f in (one, two, three)] == [True, True, False]


def test_the_control_of_more_labels_stays(
    demo: Demo, asked: Labels, scorable: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, script(lambda prompt: f"label {asked[prompt]}")):
        done("generate", "--features", numbers(scorable[:6]), "--score")
        first = demo.details.control
        out = done("generate", "--features", numbers(scorable[6:8]), "--score")
        assert demo.details.control == first
        assert first.n == 6
        words = (
            "2 labels tried on features they were not written for scored 0.50, too few to tell (0.5 expected by chance)"
        )
        assert f"\ncontrol: {words}\n" in out
        done("generate", "--features", numbers(scorable[:7]), "--score")
        assert demo.details.control.n == 7


def test_a_dry_run_without_a_pass_names_the_command_that_makes_it(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "calibrate", pytest.fail)
    words = ("generate", "--dry-run", "--seed", "7", "--corpus-path", "my texts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reuse, "_agrees", lambda *_: False)
        status, out, err = run(*words)
    command = "neuroscope_jax calibrate run --config demo --corpus-path 'my texts' --samples 50000 --seed 7"
    assert (status, out) == (1, "")
    assert "no finished corpus pass of demo/" in err
    assert f"Make it with `{command}`" in err
    for file in demo.files.all():
        file.unlink()
    status, out, err = run("generate", "--dry-run")
    assert (status, out) == (1, "")
    assert "Make it with `neuroscope_jax calibrate run --config demo --samples 50000`, then" in err


def test_a_score_stays_with_a_label_that_comes_out_the_same(
    demo: Demo, asked: Labels, scorable: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = scorable[:2]
    chosen = numbers([one, two])
    with served(monkeypatch, script(lambda prompt: f"first {asked[prompt]}")) as server:
        done("generate", "--features", chosen, "--score")
        before = demo.details
        assert before.features[one].score.balanced_accuracy == 0.5
        server.script = script(lambda prompt: {one: f"first {one}", two: "another"}[asked[prompt]])
        out = done("generate", "--features", chosen, "--labeler", "claude-sonnet-5-5")
    assert demo.details.features[one].score == before.features[one].score
    assert demo.details.features[two].score is None
    assert demo.details.control == before.control
    assert "scored" not in out


def test_flagged_labels_are_replaced_where_that_is_asked_for(
    demo: Demo, asked: Labels, scorable: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = scorable[:3]
    good = {f"Name: label {chosen[0]}": True}  # found everywhere, as are the others nowhere: 0.5 each

    def judge(prompt: str) -> dict[str, bool]:
        names = re.findall(r"^(s\d+): ", prompt, re.M)
        return dict.fromkeys(names, any(name in prompt for name in good))

    with served(monkeypatch, script(lambda prompt: f"label {asked[prompt]}", judge)):
        out = done("generate", "--features", numbers(chosen), "--score")
        assert "\n3 labels score below 0.60; they stay in the file (--replace-flagged takes them out)\n" in out
        assert len(demo.labels()) == 3
        out = done("generate", "--features", numbers(chosen), "--score", "--replace-flagged")
    assert "\n3 labels scored below 0.60 and were taken out of the file\n" in out
    assert demo.labels() == {}
    assert demo.details.features[chosen[0]].replaced
    assert demo.details.features[chosen[0]].label == f"label {chosen[0]}"
    assert load_labels(demo.config, 2048).text(chosen[0]) == f"feature_{chosen[0]}"


def test_batches_bring_labels_and_scores_at_half_the_price(
    demo: Demo, asked: Labels, scorable: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = numbers(scorable[:10])
    with served(monkeypatch, script(lambda prompt: f"label {asked[prompt]}")) as server:
        whole = done("generate", "--features", chosen, "--score", "--dry-run")
        half = done("generate", "--features", chosen, "--score", "--dry-run", "--batch")
        out = done("generate", "--features", chosen, "--score", "--batch")
        assert server.requests == 0
        first, second = server.batches.sent.values()
    assert [is_score(r["params"]) for r in (*first, *second)] == [False] * 10 + [True] * len(second)
    dollars = [float(re.search(r"\$([\d.]+)", text)[1]) for text in (whole, half)]
    assert dollars[1] == pytest.approx(dollars[0] / 2, abs=0.01)
    assert "scored: 10 labels, mean balanced accuracy 0.50" in out
    assert demo.labels() == {f: f"label {f}" for f in scorable[:10]}


def test_decoder_logits_are_shown_where_asked_for(demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    feature = str(min(asked.values()))
    plain = done("generate", "--features", feature, "--dry-run")
    assert "likelier to come next" not in plain
    assert "Tokens that it makes likelier to come next: " in done(
        "generate", "--features", feature, "--dry-run", "--decoder-logits"
    )


def test_fewer_examples_are_shown_where_asked_for(demo: Demo, asked: Labels) -> None:
    feature = str(min(asked.values()))
    shown = done("generate", "--features", feature, "--dry-run", "--examples-per-feature", "3")
    assert len(re.findall(r"^\d+\. \d+ \(", shown, re.M)) == 3 + 5


def test_labels_go_to_the_output_that_is_named(
    demo: Demo, asked: Labels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feature, other = min(asked.values()), tmp_path / "mine" / "labels.json"
    with served(monkeypatch, script(lambda prompt: "elsewhere")):
        assert str(other) in done("generate", "--features", str(feature), "--output", str(other))
    assert demo.labels(other) == {feature: "elsewhere"}
    assert details_path(other).is_file()
    assert not demo.path.exists()


def test_labels_of_another_pair_are_not_written_over(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as server:
        done("generate", "--features", "0-3")
        place = details_path(demo.path)
        found = json.loads(place.read_text())
        found["pair"]["sae_sha256"] = "0" * 64
        place.write_text(json.dumps(found))
        before, requests = demo.labels(), server.requests
        line = refused("generate", "--features", "4-9")
        assert server.requests == requests
    assert line.startswith(f"{place}: labels of another SAE")
    assert demo.labels() == before


def test_the_log_tells_which_pass_is_used_and_what_it_will_cost(
    demo: Demo, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch):
        run("generate", "--features", "0-3")
    told = [record.getMessage() for record in caplog.records if record.name.startswith("neuroscope_jax.autointerp")]
    assert told[0].startswith(f"reusing the corpus pass at {demo.files.stats}: 300 samples of demo, seed 0, made ")
    assert re.match(r"estimate: \d calls .*\(tokens counted by the Anthropic API\)$", told[1])


EMPTY = stand_in.Reply(b"")
REFUSED = stand_in.error(400, "invalid_request_error", "no such\x1b[2J setting")


@pytest.mark.parametrize("reply", [EMPTY, REFUSED])
@pytest.mark.parametrize("more", [[], ["--batch"]])
def test_labels_are_not_lost_to_a_run_without_answers(
    demo: Demo, asked: Labels, reply: stand_in.Reply, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    features = sorted(asked.values())[:4]
    with served(monkeypatch, script(lambda prompt: f"first {asked[prompt]}")) as server:
        done("generate", "--features", numbers(features))
        before, details = demo.labels(), demo.details.features
        server.script = lambda request: reply
        server.batches.outcomes = stand_in_batches.AllErrored()
        status, out, err = run("generate", "--features", numbers(features), "--examples-per-feature", "10", *more)
    assert (demo.labels(), demo.details.features) == (before, details)
    assert status == 1
    assert err.startswith("no question for labels got an answer of the model, the causes are above; earlier labels")
    assert "labelled: 0 of 4 features" in out
    assert "kept: 4 earlier labels, where the new one failed\n" in out
    if reply is REFUSED and not more:
        assert f"  4 400 invalid_request_error: {', '.join(map(str, features))}\n" in out
        assert "    the first: (no such[U+001B][2J setting)\n" in out
    assert "\x1b" not in out + err


def test_one_failure_keeps_the_earlier_label_and_is_no_error(
    demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = sorted(asked.values())[:2]
    with served(monkeypatch, script(lambda prompt: f"first {asked[prompt]}")) as server:
        done("generate", "--features", numbers([one, two]))
        server.script = script(lambda prompt: {one: stand_in.refusal(), two: "second"}[asked[prompt]])
        out = done("generate", "--features", numbers([one, two]), "--labeler", "claude-sonnet-5-5")
    assert demo.labels() == {one: f"first {one}", two: "second"}
    assert "kept: 1 earlier label, where the new one failed\n" in out


def test_labels_of_a_lost_file_come_back_from_its_details(
    demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = sorted(asked.values())[:6]
    with served(monkeypatch, script(lambda prompt: f"first {asked[prompt]}")):
        done("generate", "--features", numbers(features))
        before = demo.labels()
        demo.path.unlink()
        done("generate", "--features", numbers(features[:3]))
    assert demo.labels() == before


def test_a_budget_that_was_passed_is_told(demo: Demo, asked: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    def dear(request: stand_in.Request) -> stand_in.Reply:
        fields = {"pattern": "they share it", "label": "greeting", "confidence": "low"}
        return stand_in.message(json.dumps(fields), tokens=(1_000_000, 20))

    with served(monkeypatch, dear):
        out = done("generate", "--features", str(min(asked.values())), "--max-usd", "0.5")
    assert "1 call, 0 answered earlier" in out
    assert "--max-usd 0.5 was passed: $1.00 spent\n" in out
