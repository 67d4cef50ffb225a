"""`python -m benchmarks` on its tiny shape: that it measures, keeps and judges figures, not what they are."""

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks import __main__ as yardstick_module
from benchmarks import decode, files, sections
from benchmarks.__main__ import main
from benchmarks.checkpoint import checkpoint
from benchmarks.corpus_results import CorpusRun, OurPass, Passed, PeerPass, Took
from benchmarks.ours import share_of_limit
from benchmarks.patience import first_tokens
from benchmarks.processes import MeasurementFailed, measure
from benchmarks.prompts import BOS, prompt
from benchmarks.results import Bandwidth, Ours, Peer, Plan, Run, Spread, Start, StepCost
from benchmarks.shapes import GEMMA_2_2B, TINY
from benchmarks.yardstick_report import markdown
from benchmarks.yardstick_requirements import REQUIREMENTS, Figures
from benchmarks.yardstick_results import Chat, FirstToken, Growth, Lag, Lookahead, Starts, Yardstick

READ = 5e10  # bytes a second
MODEL_BYTES, SAE_BYTES = 5 * 10**9, 10**8


def one(value: float) -> Spread:
    return Spread.of([value])


def ours(per_second: float, overhead: float) -> Ours:
    """A bare step of 100 ms."""
    return Ours(
        start=Start(10, 5, 4, 16, 0, 17),
        second_start=None,
        first_token_seconds={"64": one(1)},
        tokens_per_second=one(per_second),
        read_speed=one(READ),
        share=one(per_second * (MODEL_BYTES + SAE_BYTES) / READ),
        step=StepCost(one(0.1 * (1 + overhead)), one(0.1), one(overhead), 2_000_000, [], ["sae_encode"]),
        recompiled=0,
        average_l0=70,
        model_bytes=MODEL_BYTES,
        sae_bytes=SAE_BYTES,
        peak_bytes=2**33,
        ids=[1, 2],
    )


def peer(per_second: float, features: bool = True) -> Peer:
    return Peer(20, {"64": one(2)}, one(per_second), 2**33, [1, 2], features)


def yardstick_of(
    per_second: float = 9.0,
    llama: float = 8.7,
    overhead: float = 0.025,
    prefill: float = 5.0,
    tenth: float = 1.2,
    whole: float = 1.04,
    ready: float = 7.0,
    corpus_seconds: float = 10.0,
    elsewhere: float = 0.98,
    lag: float = 0.019,
) -> Yardstick:
    """A run of the 2B shape with figures made by hand, in which everything required holds unless one is changed."""
    bandwidth = Bandwidth("cpu", {"sum": one(READ)})
    peers = {"torch-bfloat16": peer(5.0), "llama-bf16": peer(llama, features=False)}
    run = Run({}, GEMMA_2_2B.name, "cpu", bandwidth, {"bfloat16": ours(per_second, overhead)}, peers, {})
    chat = Chat(640, 48, one(tenth), one(1), one(tenth))
    late = Lag(4000, 100, 0.001, 0.002, lag)
    first = {
        "bfloat16": FirstToken({"512": one(prefill)}, chat, late),
        "torch-bfloat16": FirstToken({"512": one(5)}, None),
    }
    growth = Growth(4096, {"300": one(0.1 * whole)}, {"300": one(2**33)}, 512, one(0.1), 300, one(whole))
    start = Start(1, 1, 0.1, 0, 16, ready)
    half, passed = (Passed(size, Took(corpus_seconds, 1), 2**33, size) for size in (2048, 4096))
    its = PeerPass(half, Passed(4096, Took(20, 1), 2**33, 4096))
    took = [Took(1, 1)]
    corpus = CorpusRun(
        GEMMA_2_2B.name,
        32,
        {"bfloat16": [OurPass(half, passed, 16, took, took, 0)]},
        {"delphi-bfloat16": [its]},
        {},
    )
    ahead = Lookahead(one(5), one(20), one(4), one(elsewhere))
    starts = Starts([start], [start], [2.1])
    return Yardstick(32, 1, run, first, {"bfloat16": growth}, {"bfloat16": ahead}, {"bfloat16": starts}, corpus)


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"per_second": 7.9}, ["PyTorch bfloat16 with hook", "llama"]),
        ({"per_second": 8.0, "llama": 7}, []),
        ({"per_second": 8.0}, ["llama"]),
        ({"overhead": 0.031}, ["tap"]),
        ({"prefill": 5.6}, ["prefill"]),
        ({"tenth": 1.31}, ["tenth"]),
        ({"whole": 1.06}, ["whole context"]),
        ({"elsewhere": 0.96}, ["lookahead"]),
        ({"lag": 0.0201}, ["event loop"]),
        ({"ready": 7.2}, ["warm start"]),
        ({"corpus_seconds": 10.1}, ["corpus"]),
    ],
)
def test_requirements_are_held_against_the_figures(changed: dict[str, float], missed: list[str]) -> None:
    yardstick = yardstick_of(**changed)
    found = [(what, find(Figures(yardstick))) for what, find in REQUIREMENTS]
    failed = [what for what, verdict in found if verdict is not None and not verdict[1]]
    assert [any(word in what for what in failed) for word in missed] == [True] * len(missed)
    assert len(failed) == len(missed)
    assert markdown(yardstick).count("**NO**") == len(missed)


def test_the_share_of_the_limit() -> None:
    found = Figures(yardstick_of(per_second=0.79 * READ / (MODEL_BYTES + SAE_BYTES))).share_of_limit()
    assert found is not None
    assert found[1] is False
    assert found[0].startswith("0.79 of")


def test_an_answer_is_held_against_the_faster_of_the_readings_beside_it() -> None:
    answers, readings = iter([2.0, 4.0]), iter([100.0, 80.0, 160.0])
    read_speed, share = share_of_limit(10, lambda: next(answers), lambda: next(readings), 2)
    assert (read_speed.least, read_speed.median, read_speed.most) == (80, 100, 160)
    assert (share.least, share.most) == (pytest.approx(20 / 100), pytest.approx(40 / 160))


def test_eight_bits_are_judged_once_they_are_measured() -> None:
    yardstick = yardstick_of()
    assert "Not decided by this run: int8" in markdown(yardstick)
    yardstick.decode.ours["int8"] = ours(13.0, 0.025)
    yardstick.decode.peers["llama-q8_0"] = peer(13.3, features=False)
    found = Figures(yardstick).beside_llama_q8_0()
    assert found is not None
    assert found[1] is False


def test_what_was_not_measured_is_said_and_not_judged() -> None:
    bandwidth = Bandwidth("cpu", {"sum": one(READ)})
    yardstick = Yardstick(32, 1, Run({}, GEMMA_2_2B.name, "cpu", bandwidth, {}, {}, {"saklas-bfloat16": "not here"}))
    yardstick.failed["growth: bfloat16"] = "ended with status 1"
    text = markdown(yardstick)
    assert "**saklas-bfloat16 was NOT measured:** not here" in text
    assert "**growth: bfloat16 was NOT measured:** ended with status 1" in text
    assert all(what in text for what, _ in REQUIREMENTS)
    assert "**NO**" not in text


class Programs:
    """Stands in for `measure`: figures made by hand, and a note of what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.plans: list[Any] = []
        self.failing: set[str] = set()
        whole = yardstick_of()
        self._results: dict[Any, Any] = {
            Bandwidth: whole.decode.bandwidth,
            Ours: whole.decode.ours["bfloat16"],
            Peer: whole.decode.peers["torch-bfloat16"],
            FirstToken: whole.first_token["bfloat16"],
            Growth: whole.growth["bfloat16"],
            Start: whole.start["bfloat16"].warm[0],
        }

    def __call__(self, module: str, plan: Any, result: Any, **environment: str) -> Any:
        self.asked.append(module)
        self.plans.append(plan)
        if module in self.failing:
            raise MeasurementFailed(f"{module} ended with status 1")
        return self._results[result]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    stand_in = Programs()
    for module in (decode, sections):
        monkeypatch.setattr(module, "measure", stand_in)
    return stand_in


def test_each_program_is_written_down_once_it_is_measured(programs: Programs, monkeypatch, tmp_path: Path) -> None:
    json, report = tmp_path / "run.json", tmp_path / "run.md"
    written: list[tuple[int, int]] = []
    write = yardstick_module._write

    def noted(yardstick: Yardstick, options: Any) -> None:
        write(yardstick, options)
        kept = msgspec.json.decode(json.read_bytes(), type=Yardstick)
        written.append((len(kept.growth), len(kept.start["bfloat16"].warm) if kept.start else 0))

    monkeypatch.setattr(yardstick_module, "_write", noted)
    main(
        ["--shape", "tiny", "--only", "growth,start", "--repeats", "2", "--json", str(json), "--markdown", str(report)]
    )
    assert written == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert "step at 300 of 4,096" in report.read_text()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["run.json", "run.md"]


def test_int8_has_no_peer_but_llama(programs: Programs, tmp_path: Path) -> None:
    json = tmp_path / "run.json"
    main(["--shape", "tiny", "--repeats", "1", "--json", str(json), "--only", "decode,growth", "--dtype", "int8"])
    assert programs.asked == ["bandwidth", "ours", "startup", "ours_growth"]
    assert {plan.quantization for plan in programs.plans[1:]} == {"int8"}
    assert list(msgspec.json.decode(json.read_bytes(), type=Yardstick).growth) == ["int8"]


def test_a_resumed_run_measures_what_is_not_there(programs: Programs, tmp_path: Path) -> None:
    json = tmp_path / "run.json"
    arguments = ["--shape", "tiny", "--repeats", "1", "--json", str(json)]
    main([*arguments, "--only", "growth"])
    main([*arguments, "--only", "growth,start", "--resume"])
    assert programs.asked == ["bandwidth", "ours_growth", "startup", "startup"]


def test_a_failure_is_noted_and_tried_again(programs: Programs, capsys, tmp_path: Path) -> None:
    json = tmp_path / "run.json"
    arguments = ["--shape", "tiny", "--only", "growth,start", "--repeats", "1", "--json", str(json)]
    programs.failing.add("ours_growth")
    with pytest.raises(SystemExit, match="1 programs failed"):
        main(arguments)
    assert "**growth: bfloat16 was NOT measured:**" in capsys.readouterr().out
    programs.failing.clear()
    main([*arguments, "--resume"])
    assert "NOT measured" not in capsys.readouterr().out
    assert programs.asked.count("startup") == 2


@pytest.mark.parametrize("other", [["--tokens", "9"], ["--repeats", "7"]])
def test_another_runs_file_is_not_gone_on_with(programs: Programs, tmp_path: Path, other: list[str]) -> None:
    arguments = ["--shape", "tiny", "--only", "growth", "--json", str(tmp_path / "run.json")]
    main(arguments)
    with pytest.raises(SystemExit, match="measured on another machine or with another"):
        main([*arguments, *other, "--resume"])


def test_a_file_of_something_else_is_named(programs: Programs, tmp_path: Path) -> None:
    json = tmp_path / "run.json"
    json.write_text("[1]")
    with pytest.raises(SystemExit, match=re.escape(f"{json}: no report of python -m benchmarks")):
        main(["--shape", "tiny", "--json", str(json), "--resume"])


def test_resume_needs_a_file(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--shape", "tiny", "--resume"])
    assert "--resume: needs --json FILE" in capsys.readouterr().err


def test_an_unknown_section_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "speed"])
    assert "speed: expected some of decode,peers," in capsys.readouterr().err


def plan(**changed: Any) -> Plan:
    return msgspec.structs.replace(Plan(str(checkpoint(TINY)), TINY.name, "float32", "cpu", 4, 1), **changed)


@pytest.mark.slow
def test_the_first_token_is_timed_by_length_and_in_a_chat() -> None:
    found = measure("ours_first_token", plan(prompts=(8, 100)), FirstToken)
    assert list(found.seconds) == ["8", "100"]
    chat = found.chat
    assert chat is not None
    assert chat.prompt_tokens - chat.new_tokens == 9 * (TINY.turn.question + TINY.turn.answer)
    assert chat.ratio.median == pytest.approx(chat.turn_seconds.median / chat.fresh_seconds.median)
    lag = found.lag
    assert lag is not None
    assert lag.prompt_tokens == 100
    assert lag.wakes > 0
    assert 0 < lag.median <= lag.percentile_99 <= lag.most


@pytest.mark.slow
def test_the_step_is_timed_where_the_context_is_fuller() -> None:
    found = measure("ours_growth", plan(), Growth)
    assert list(found.step_seconds) == list(found.peak_bytes) == [str(position) for position in TINY.positions]
    assert found.ratio.median == pytest.approx(found.step_seconds["300"].median / found.short_seconds.median)
    assert found.peak_bytes["900"].most > 0


@pytest.mark.slow
def test_lookahead_is_timed_beside_none() -> None:
    found = measure("ours_lookahead", plan(tokens=20), Lookahead)
    assert found.gain.median == pytest.approx(found.foreseen.median / found.plain.median)
    assert found.elsewhere.median > 0


def test_variants_of_a_prompt_begin_alike_with_bos_alone() -> None:
    first, second = (np.array(prompt(TINY.name, 100, variant)) for variant in (1, 2))
    assert first[0] == second[0] == BOS
    assert (first[1:] == second[1:]).mean() < 0.1


def test_a_slow_program_is_not_waited_for_at_every_length() -> None:
    seconds = iter([1.0, 2.0, 200.0, 101.0])
    found = first_tokens(lambda ids: next(seconds), plan(repeats=2), (100, 8, 200, 300))
    assert found == {"8": Spread.of([1.0, 2.0]), "100": Spread.of([200.0, 101.0])}


def test_nor_is_one_that_will_be_slow() -> None:
    """A second a token: 299 are borne, 301 are not begun with."""
    found = first_tokens(lambda ids: float(len(ids)), plan(repeats=1), (8, 299, 301))
    assert list(found) == ["8", "299"]


def test_each_repeat_has_a_prompt_of_its_own() -> None:
    prompts: list[tuple[int, ...]] = []
    first_tokens(lambda ids: float(prompts.append(ids) or 1), plan(repeats=3), (8,))
    assert len(set(prompts)) == 3
    assert {len(ids) for ids in prompts} == {8}


def test_the_files_are_read_whole_whether_in_memory_or_not(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"0" * (files.BLOCK + 1))
    (tmp_path / "folder").mkdir()
    files.evict(tmp_path)
    assert files.read_seconds(tmp_path) > 0
