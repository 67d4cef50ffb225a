"""`quantization report` on the demo pair, as typed."""

from pathlib import Path

import msgspec
import pytest

from neuroscope_jax import cli
from neuroscope_jax.config import load_preset
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import model_folder
from neuroscope_jax.quantization.report import PASSAGES, WINDOW, Report, _windows, as_text

pytestmark = pytest.mark.slow


def reported(capsys: pytest.CaptureFixture[str], *argv: str) -> Report:
    assert cli.run(["quantization", "report", "--config", "demo", "--json", *argv]) == 0
    return msgspec.json.decode(capsys.readouterr().out, type=Report)


def test_int8_changes_little_and_int4_more(capsys: pytest.CaptureFixture[str]) -> None:
    eight = reported(capsys, "--tokens", "300")
    four = reported(capsys, "--tokens", "300", "--quantization", "q4k")
    assert (eight.quantization, four.quantization) == ("int8", "int4")
    assert eight.tokens >= 300
    assert 0 < eight.kl_nats < four.kl_nats / 4
    assert four.kl_nats < 0.1
    assert eight.next_token_agreement > 0.97
    assert eight.top_overlap > 0.95 > four.top_overlap
    assert eight.activation_error < 0.05 < four.activation_error
    assert eight.residual_error < four.residual_error < 0.5
    assert eight.quantized_l0 == pytest.approx(eight.plain_l0, rel=0.03)
    assert eight.plain_l0 == four.plain_l0
    assert eight.plain_bytes > 1.5 * eight.quantized_bytes > 2 * four.quantized_bytes


def test_a_text_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("The capital of France is Paris.")
    found = reported(capsys, "--text", str(text), "--tokens", "3")
    assert found.tokens == 3
    assert found.text == str(text)


def test_as_text_says_every_figure() -> None:
    report = Report(
        model="m", sae="s", layer=7, quantization="int8", dtype="float32", text="t", tokens=1234,
        next_token_agreement=0.987, kl_nats=0.0123, top_k=10, top_overlap=0.912, activation_error=0.034,
        plain_l0=71.25, quantized_l0=70.5, residual_error=0.0056, plain_bytes=4_000_000_000, quantized_bytes=10**9,
    )  # fmt: skip
    told = as_text(report)
    for figure in ("layer 7", "1,234", "98.7%", "0.0123", "91.2%", "3.4%", "70.50", "71.25", "0.56%", "4.00 x"):
        assert figure in told, figure


def test_passages_that_come_with_the_program_fill_windows() -> None:
    tokenizer = ChatTokenizer.load(model_folder(load_preset("demo").model_id))
    windows = list(_windows(PASSAGES.read_text(encoding="utf-8").split("\n\n"), tokenizer, 200))
    assert {ids.shape for ids, _ in windows} == {(1, WINDOW)}
    assert all(int(ids[0, 0]) == tokenizer.bos_id and not counts[0] for ids, counts in windows)
    assert sum(int(counts.sum()) for _, counts in windows) == 200


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--quantization", "none"], "--quantization none: there is nothing to compare"),
        (["--quantization", "int9"], "--quantization int9: expected one of none, int8, int4"),
        (["--tokens", "0"], "--tokens 0: expected 1 or more"),
        (["--text", "/nonexistent.txt"], "Cannot read the corpus /nonexistent.txt"),
    ],
)
def test_what_cannot_be_done_is_said(capsys: pytest.CaptureFixture[str], argv: list[str], message: str) -> None:
    assert cli.run(["quantization", "report", "--config", "demo", *argv]) == 1
    assert capsys.readouterr().err.startswith(message)
