"""The choice of a platform, with device lists of machines this one is not."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import jax
import pytest

from neuroscope_jax import platforms
from neuroscope_jax.errors import UserError


def device(kind: str, name: str = "") -> Mock:
    return Mock(spec=jax.Device, platform=kind, device_kind=name)


class Machine:
    """Stands in for JAX: what is there, what is installed, which options were set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...], installed: tuple[str, ...]) -> None:
        self.options: dict[str, object] = {}
        self.found = {kind: [device(kind)] for kind in present}
        monkeypatch.setattr(platforms, "devices", lambda kind: self.found.get(kind, []))
        monkeypatch.setattr(platforms, "installed", lambda kind: kind in installed)
        monkeypatch.setattr(platforms, "_set", self.options.__setitem__)
        monkeypatch.setattr(platforms.jax, "devices", lambda: next(iter(self.found.values())))
        monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)


@pytest.mark.parametrize(
    ("present", "chosen"),
    [(("tpu", "gpu", "cpu"), "gpu"), (("tpu", "cpu"), "tpu"), (("cpu",), "cpu")],
)
def test_auto_prefers_cuda_then_tpu_then_cpu(
    monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...], chosen: str
) -> None:
    Machine(monkeypatch, present, installed=("gpu", "tpu"))
    assert platforms.choose("auto").platform == chosen


def test_auto_does_not_wake_what_has_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, ("cpu", "gpu"), installed=())
    assert platforms.choose("auto").platform == "cpu"
    assert machine.options["jax_platforms"] == "cpu"


def test_the_choice_becomes_the_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, ("gpu", "tpu", "cpu"), installed=("gpu", "tpu"))
    assert platforms.choose("tpu").platform == "tpu"
    assert machine.options["jax_default_device"] is machine.found["tpu"][0]


@pytest.mark.parametrize(("kind", "extra"), [("gpu", "[cuda]"), ("tpu", "[tpu]")])
def test_absent_platform_says_what_is_there_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch, kind: platforms.Kind, extra: str
) -> None:
    Machine(monkeypatch, ("cpu",), installed=())
    with pytest.raises(UserError) as caught:
        platforms.choose(kind)
    assert f"platform {kind}" in str(caught.value)
    assert extra in str(caught.value)
    assert "use one of: cpu" in str(caught.value)


def test_plugin_without_hardware_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, ("cpu",), installed=("gpu",))
    with pytest.raises(UserError, match="no such device was found; found cpu; check the driver"):
        platforms.choose("gpu")


def test_gpu_memory_is_taken_as_needed_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, ("cpu",), installed=())
    platforms.choose("cpu")
    assert os.environ.pop("XLA_PYTHON_CLIENT_PREALLOCATE") == "false"
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    platforms.choose("cpu")
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"


@pytest.mark.parametrize(("typed", "meant"), [("auto", "auto"), ("CPU", "cpu"), ("cuda", "gpu"), ("tpu", "tpu")])
def test_names_people_type(typed: str, meant: str) -> None:
    assert platforms.parse(typed) == meant


def test_metal_says_what_jax_offers_and_what_to_use() -> None:
    with pytest.raises(UserError, match=r"jax-metal.*no longer maintained.*--platform cpu"):
        platforms.parse("metal")
    with pytest.raises(UserError, match="'xpu': expected one of auto, cpu, gpu, tpu"):
        platforms.parse("xpu")


def test_description_names_the_device() -> None:
    assert platforms.describe(device("gpu", "NVIDIA H200")) == "gpu (NVIDIA H200)"
    assert platforms.describe(device("gpu", "NVIDIA H200"), 2) == "2 x gpu (NVIDIA H200)"
    assert platforms.describe(device("cpu")) == f"cpu ({os.cpu_count()} cores)"


def test_unwritable_cache_folder_is_warned_of_and_lived_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(monkeypatch, ("cpu",), installed=())
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "file"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    platforms.choose("cpu")
    assert "jax_compilation_cache_dir" not in machine.options
    assert [r.levelname for r in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("variables", "kept"), [({}, "ours/xla"), ({"JAX_COMPILATION_CACHE_DIR": "theirs"}, "theirs")], ids=["", "JAX's"]
)
def test_compiled_code_is_kept(tmp_path: Path, variables: dict[str, str], kept: str) -> None:
    """In a process of its own: JAX takes these options once."""
    program = "from neuroscope_jax import platforms; import jax; platforms.choose('cpu'); jax.jit(lambda x: x + 1)(1.0)"
    ours = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment = ours | {"NEUROSCOPE_CACHE": str(tmp_path / "ours"), "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", program]
    subprocess.run(command, env=environment | variables, cwd=tmp_path, check=True, timeout=120)
    assert any((tmp_path / kept).iterdir())
