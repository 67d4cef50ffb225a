"""The command line: what reaches the config, what is refused and in which words, and what help says."""

import inspect
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fire
import pytest

import server.__main__
from neuroscope_jax import __version__, cli, flags, platforms
from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub

Serve = Callable[..., NeuroscopeConfig]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Runs `serve` up to the point where the server would start; returns the config it would start with."""

    def run(*argv: str) -> NeuroscopeConfig:
        started: list[NeuroscopeConfig] = []
        monkeypatch.setattr(server.__main__, "start", started.append)
        assert cli.run(["serve", *argv]) == 0
        (config,) = started
        return config

    return run


def refused(capsys: pytest.CaptureFixture[str], status: int, argv: list[str]) -> str:
    """The one line a refused command line leaves on stderr."""
    assert cli.run(argv) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_without_flags_the_defaults_are_served(serve: Serve) -> None:
    assert serve() == NeuroscopeConfig()


@pytest.mark.parametrize(
    ("argv", "field", "value"),
    [
        (["--model", "google/gemma-2-2b"], "model_id", "google/gemma-2-2b"),
        (["--model=x=y"], "model_id", "x=y"),
        (["--sae-layer", "5"], "target_layer", 5),
        (["--sae-layer", "5", "--sae-width", "16k"], "sae_path", "layer_5/width_16k/average_l0_68/params.npz"),
        (["--sae-path", "layer_1/x.npz"], "sae_path", "layer_1/x.npz"),
        (["--sae-local-path", "/s/layer_4.npz"], "sae_local_path", "/s/layer_4.npz"),
        (["--sae-input-norm", "rms"], "sae_input_norm", "rms"),
        (["--top-k", "5"], "top_k", 5),
        (["--top_k=5"], "top_k", 5),
        (["--port", "0"], "port", 0),
        (["--features-port=9001"], "features_port", 9001),
        (["--host", "0.0.0.0"], "host", "0.0.0.0"),
        (["--api-key", "sesame"], "api_key", "sesame"),
        (["--allowed-hosts", "box.example, ::2"], "allowed_hosts", ("box.example", "::2")),
        (["--allowed-origins", "https://a.example"], "allowed_origins", ("https://a.example",)),
        (["--queue-size", "7"], "queue_size", 7),
        (["--heartbeat-seconds", "0"], "heartbeat_seconds", 0.0),
        (["--platform", "cpu"], "platform", "cpu"),
        (["--device", "cuda"], "platform", "gpu"),
        (["--dtype", "bfloat16"], "dtype", "bfloat16"),
        (["--context-length", "128"], "context_length", 128),
        (["--feature-filter", "combined"], "feature_filter", "combined"),
        (["--filter-threshold", "1e-2"], "filter_threshold", 0.01),
        (["--calibration-path", "/c/stats.json"], "calibration_path", "/c/stats.json"),
        (["--broadcast-buffer-size", "4"], "broadcast_buffer_size", 4),
        (["--quantization", "none"], "quantization", "none"),
        (["--quantization", "int4"], "quantization", "int4"),
        (["--quantization", "q8_0"], "quantization", "int8"),
        (["--quantization", "Q4K"], "quantization", "int4"),
    ],
)
def test_a_flag_reaches_its_field(serve: Serve, argv: list[str], field: str, value: object) -> None:
    assert getattr(serve(*argv), field) == value


def test_the_key_may_come_from_the_environment(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUROSCOPE_API_KEY", "from-outside")
    assert serve().api_key == "from-outside"
    assert serve("--api-key", "typed").api_key == "typed"


def test_an_empty_key_does_not_open_the_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEUROSCOPE_API_KEY", "")
    assert "NEUROSCOPE_API_KEY is set but empty" in refused(capsys, 1, ["serve"])


@pytest.mark.parametrize("text", ["1e5", "None", "True", "{a}", "[1]", "007", "-", "a b", '"quoted"'])
def test_text_stays_as_it_was_typed(serve: Serve, text: str) -> None:
    assert serve("--model", text).model_id == text
    assert serve(f"--model={text}").model_id == text


def test_words_without_a_flag_stay_text_too() -> None:
    @flags.command()
    def take(*words: str) -> None:
        taken.extend(words)

    taken: list[str] = []
    typed = ["5", "1e3", "{a}", "a,b"]
    fire.Fire({"take": take}, command=["take", *flags.checked(take, typed)])
    assert taken == typed


def test_single_flags_change_a_preset(serve: Serve, tmp_path: Path) -> None:
    assert serve("--config", "demo") == load_preset("demo")
    assert serve("--top-k", "4", "--config", "demo") == load_preset("demo", top_k=4)
    file = tmp_path / "mine.toml"
    file.write_text("top_k = 6\nport = 9000\n")
    config = serve("--config", str(file), "--port", "9001")
    assert (config.top_k, config.port) == (6, 9001)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["serve", "--top-kk", "5"], "unknown flag --top-kk; did you mean --top-k?"),
        (["serve", "--modle=x"], "unknown flag --modle; did you mean --model?"),
        (["serve", "-p", "80"], "unknown flag -p; did you mean --port?"),
        (["serve", "--top-k"], "--top-k needs a value, as in --top-k=VALUE"),
        (["serve", "--top-k", "--port", "80"], "--top-k needs a value, as in --top-k=VALUE"),
        (["serve", "--top-k", "5.5"], "--top-k '5.5': expected a whole number"),
        (["serve", "--top-k", "1e1"], "--top-k '1e1': expected a whole number"),
        (["serve", "--port", "abc"], "--port 'abc': expected a whole number"),
        (["serve", "--port="], "--port '': expected a whole number"),
        (["serve", "--model="], "--model '': expected a value that is not empty"),
        (["serve", "--filter-threshold", "half"], "--filter-threshold 'half': expected a number"),
        (["serve", "--dtype", "float16"], "--dtype 'float16': expected one of auto, float32, bfloat16"),
        (["serve", "--port", "1", "--port", "2"], "--port is given twice"),
        (["serve", "--platform", "cpu", "--device", "gpu"], "--platform and --device say different things"),
        (["serve", "demo"], "unexpected argument 'demo'; options are given as --name value"),
        (["serve", "--", "--trace"], "unknown flag --;"),
        (["serv"], "'serv' is not a command; did you mean serve?"),
        (["frobnicate"], "'frobnicate' is not a command; there are: serve, models, sae, corpus, labels, "),
        (["models", "pul"], "'pul' is not a command of models; did you mean pull?"),
        (["models", "pull"], "MODEL_ID is missing; see --help"),
        (["models", "pull", "a", "b"], "unexpected argument 'b'"),
        (["version", "--verbose", "1"], "unknown flag --verbose"),
    ],
)
def test_a_mistyped_command_line_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert refused(capsys, 2, argv).startswith(message)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--config", "demp"], "--config demp: no such preset; there are demo"),
        (["--top-k", "0"], "top_k (--top-k) is 0; expected at least 1"),
        (["--port", "8081"], "features_port (--features-port) is 8081; expected a port other than the chat port 8081"),
        (["--quantization", "int5"], "--quantization int5: expected one of none, int8, int4, or q8_0 or q4k"),
        (["--device", "metal"], "platform metal: JAX has only jax-metal"),
        (["--platform", "abacus"], "platform 'abacus': expected one of auto, cpu, gpu, tpu"),
        (["--sae-local-path", "/data/mine.npz"], "/data/mine.npz: the path names no layer_N"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert refused(capsys, 1, ["serve", *argv]).startswith(message)


def test_help_of_serve_explains_every_flag_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["serve", "--top-k", "--help"]) == 0
    text = capsys.readouterr().out
    for name in inspect.signature(cli.serve).parameters:
        assert re.search(rf"^  --{name.replace('_', '-')}( .*)?\n +\S", text, re.MULTILINE), name
    for default in ("[google/gemma-2-2b-it]", "[10]", "[8080]", "[8081]", "[frequency]", "[0.5]"):
        assert default in text


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert cli.run(argv) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in ("serve", "models pull", "sae pull", "version"))


def test_help_of_groups_and_of_commands_with_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["models"]) == 0
    assert "usage: neuroscope_jax models COMMAND" in capsys.readouterr().out
    assert cli.run(["sae", "pull", "-h"]) == 0
    text = capsys.readouterr().out
    assert "usage: neuroscope_jax sae pull REPO" in text
    assert "[layer_20/width_16k/average_l0_71/params.npz]" in text


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


def test_pull_prints_where_the_files_are(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "pull", lambda model_id, revision: Path("/cache") / model_id)
    monkeypatch.setattr(hub, "pull_sae", lambda repo, path, revision: Path("/cache") / repo / path)
    assert cli.run(["models", "pull", "owner/1e5"]) == 0
    assert cli.run(["sae", "pull", "owner/saes", "--path", "layer_1/params.npz"]) == 0
    assert capsys.readouterr().out.split() == ["/cache/owner/1e5", "/cache/owner/saes/layer_1/params.npz"]


def test_a_port_in_use_is_known_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "choose", pytest.fail)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--features-port {port}: the port is in use"):
            server.__main__.start(NeuroscopeConfig(port=0, features_port=port))


def test_no_model_no_network_three_lines_and_free_ports(tmp_path: Path) -> None:
    """The whole program, in a process of its own, with a hub that refuses connections."""
    port, features_port = free_ports()
    environment = os.environ | {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HOME": str(tmp_path),
        "NEUROSCOPE_CACHE": str(tmp_path),
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-m", "server", f"--port={port}", f"--features-port={features_port}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    what, why, remedy = done.stderr.splitlines()
    assert what.startswith("Cannot get google/gemma-2-2b-it")
    assert why.startswith("Why: no connection to http://127.0.0.1:9")
    assert "--config demo" in remedy
    for number in (port, features_port):
        socket.create_server(("127.0.0.1", number)).close()


def free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]
