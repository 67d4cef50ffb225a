"""The door to files: local folders, the cache, a stand-in for the hub on loopback, and no network at all."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from neuroscope_jax import cli, pairs
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.hub import DEMO_FOLDER, model_folder, sae_file, sae_on_this_machine
from neuroscope_jax.models.hub_cache import missing_files
from tests.models.hub_repositories import MAIN, SAE, made_up_checkpoint, repositories
from tests.models.hub_stand_in import Hub

ASK_MODEL = "hub.model_folder(sys.argv[1])"
ASK_SAE = "hub.sae_file(sys.argv[1], sys.argv[2])"


def ask(expression: str, *arguments: str, home: Path, **environment: str) -> tuple[str, list[str]]:
    """Run one request in a process of its own, since huggingface_hub reads its environment on import.

    Returns what it printed and, where it failed, the lines of the UserError.
    """
    code = f"""
import sys
from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub
try:
    print({expression})
except UserError as error:
    sys.exit(str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"HF_HOME": str(home), "NO_PROXY": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.strip(), done.stderr.splitlines() if done.returncode else []


def test_a_model_is_fetched_once_and_then_found_without_the_network(hub_server: Hub, tmp_path: Path) -> None:
    hub_server.repos, hub_server.trouble = repositories(), None
    hub_server.asked.clear()
    folder, refused = ask(ASK_MODEL, "owner/model", home=tmp_path, HF_ENDPOINT=hub_server.url)
    assert not refused
    files = {k: v for k, v in hub_server.repos["owner/model"].commits[MAIN].items() if v != b"not wanted"}
    assert {p.name: p.read_bytes() for p in Path(folder).iterdir()} == files
    asked = len(hub_server.asked)
    assert ask(ASK_MODEL, "owner/model", home=tmp_path, HF_ENDPOINT=hub_server.url) == (folder, [])
    assert ask(ASK_MODEL, "owner/model", home=tmp_path, HF_HUB_OFFLINE="1") == (folder, [])
    assert len(hub_server.asked) == asked
    (Path(folder) / "model-2.safetensors").unlink()
    assert ask(ASK_MODEL, "owner/model", home=tmp_path, HF_ENDPOINT=hub_server.url) == (folder, [])
    assert (Path(folder) / "model-2.safetensors").read_bytes() == files["model-2.safetensors"]


def test_an_sae_file_is_fetched_alone(hub: Hub, tmp_path: Path) -> None:
    file = sae_file("owner/saes", SAE)
    assert file.read_bytes() == hub.repos["owner/saes"].commits[MAIN][SAE]
    hub.asked.clear()
    assert sae_file("owner/saes", SAE) == sae_on_this_machine("owner/saes", SAE) == file
    assert hub.asked == []
    assert [p.name for p in file.parents[3].iterdir()] == ["layer_3"]


def test_a_cache_that_may_not_be_written(hub: Hub, capsys: pytest.CaptureFixture[str], unwritable: None) -> None:
    """Refused where something is to be written, served from where all is there."""
    assert cli.run(["models", "pull", "owner/model"]) == 1
    _, why, remedy = capsys.readouterr().err.splitlines()
    assert why.startswith("Why: Permission denied (")
    assert f"let this user write to {constants.HF_HUB_CACHE}, or set HF_HOME" in remedy


def test_a_complete_cache_that_may_not_be_written(hub: Hub, capsys: pytest.CaptureFixture[str], request) -> None:
    assert cli.run(["models", "pull", "owner/model"]) == 0
    request.getfixturevalue("unwritable")
    assert cli.run(["models", "pull", "owner/model"]) == 0
    first, again = capsys.readouterr().out.split()
    assert first == again


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cache without write permission, for a user who is not root."""
    cache = tmp_path / "hub"
    cache.mkdir(exist_ok=True)
    open_folders = [cache, *(p for p in cache.rglob("*") if p.is_dir())]
    above = [p for p in (tmp_path, *tmp_path.parents) if p.stat().st_mode & 0o005 != 0o005]
    modes = {p: p.stat().st_mode for p in above}
    for folder in open_folders:
        folder.chmod(0o555)
    for folder in above:
        folder.chmod(0o755)
    if root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for folder in open_folders:
            folder.chmod(0o755)
        for folder, mode in modes.items():
            folder.chmod(mode)


def test_without_any_network(tmp_path: Path) -> None:
    with Hub() as closed:
        dead = closed.url
    for where in (dead, "http://name.invalid"):
        _, lines = ask(ASK_MODEL, "owner/open", home=tmp_path, HF_ENDPOINT=where)
        assert len(lines) == 3
        assert lines[1].startswith(f"Why: no connection to {where} (")
        assert "--config demo" in lines[2]


def test_the_proxy_of_the_environment_is_used(hub_server: Hub, tmp_path: Path) -> None:
    hub_server.repos, hub_server.trouble = repositories(), None
    hub_server.asked.clear()
    proxied = {"HF_ENDPOINT": "http://hub.invalid", "HTTP_PROXY": hub_server.url, "NO_PROXY": ""}
    file, refused = ask(ASK_SAE, "owner/saes", SAE, home=tmp_path, **proxied)
    assert not refused
    assert Path(file).read_bytes() == hub_server.repos["owner/saes"].commits[MAIN][SAE]
    assert all("http://hub.invalid/" in asked for asked in hub_server.asked)


def test_passwords_in_addresses_are_not_shown(tmp_path: Path) -> None:
    with Hub() as closed:
        where = f"http://me:secret@127.0.0.1:{closed.server_port}"
    _, lines = ask(ASK_MODEL, "owner/open", home=tmp_path, HF_ENDPOINT=where)
    assert f"127.0.0.1:{closed.server_port}" in lines[0]
    assert "secret" not in "".join(lines)


def test_serving_offline_asks_no_network_and_names_what_is_missing(
    hub: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run(["models", "pull", "owner/model"]) == 0
    assert cli.run(["sae", "pull", "owner/saes", "--path", SAE]) == 0
    folder, file = map(Path, capsys.readouterr().out.split())
    hub.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    flags = {"model": "owner/model", "sae": "owner/saes", "sae_path": SAE}
    config = pairs.from_flags(flags)
    assert (model_folder(config.model_id), sae_file(config.sae_repo, config.sae_path)) == (folder, file)
    (folder / "model-2.safetensors").unlink()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # what --offline changes is put back
    argv = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    assert cli.run(["serve", "--offline", "--port=0", "--features-port=0", "--platform=cpu", *argv]) == 1
    what, why, _ = capsys.readouterr().err.splitlines()
    assert "owner/model" in what
    assert "HF_HUB_OFFLINE is set, and the cache lacks model-2.safetensors" in why
    assert hub.asked == []


def test_local_folders_are_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_folder(str(tmp_path)) == tmp_path
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "params.npz").touch()
    monkeypatch.chdir(tmp_path)
    assert model_folder("./demo") == Path("demo")
    assert sae_file("./demo", "params.npz") == Path("demo/params.npz")
    assert model_folder("demo") == DEMO_FOLDER / "model"  # the name is the bundled pair's, wherever one stands


def test_local_paths_that_do_not_exist_say_what_is_beside_them(tmp_path: Path) -> None:
    (tmp_path / "model-a").mkdir()
    with pytest.raises(UserError, match="model-a") as caught:
        model_folder(str(tmp_path / "model-b"))
    assert len(str(caught.value).splitlines()) == 3
    with pytest.raises(UserError, match="does not exist or is empty"):
        sae_file(str(tmp_path), "layer_3/params.npz")


def test_missing_files_counts_the_shards(tmp_path: Path) -> None:
    assert missing_files(tmp_path) == ["config.json", "tokenizer.json", "model.safetensors"]
    for name in ("config.json", "tokenizer.json", "model-1.safetensors"):
        (tmp_path / name).touch()
    (tmp_path / "model.safetensors.index.json").write_bytes(made_up_checkpoint(0)["model.safetensors.index.json"])
    assert missing_files(tmp_path) == ["model-2.safetensors"]
