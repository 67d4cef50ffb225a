"""The table cases/hub.toml, against a stand-in for the hub."""

import hashlib
import json
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

from neuroscope_jax import cli
from neuroscope_jax.models.checkpoints import checkpoints
from neuroscope_jax.models.hub_cache import cached
from neuroscope_jax.sae.releases import on_this_machine
from tests.models.hub_repositories import MAIN, SAE, V1, made_up_checkpoint
from tests.models.hub_stand_in import TOKEN, Hub, commit

CASES = tomllib.loads((Path(__file__).parent / "cases" / "hub.toml").read_text(encoding="utf-8"))["case"]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 5\n"


def _become(kind: str, content: bytes) -> bytes:
    garbage = b"\xff" * len(content)
    return {
        "pointer": POINTER,
        "html": b"<html>hello</html>",
        "empty": b"",
        "cut": content[:-100] or b"{",
        "garbage": garbage,
    }[kind]


def _publish(hub: Hub, name: str, changes: dict[str, str]) -> None:
    repo = hub.repos[name]
    files = repo.commits[MAIN]
    for path, kind in changes.items():
        content = files.pop(path)
        if kind != "nothing":
            files[path] = _become(kind, content)
            repo.in_git |= {path} if kind in ("pointer", "html") else set()


def _spoil(name: str, changes: dict[str, str]) -> None:
    for path, kind in changes.items():
        file = cached(name, path)
        assert file is not None
        if kind == "nothing":
            file.unlink()
        else:
            file.resolve().write_bytes(_become(kind, file.read_bytes()))


def _prepare(hub: Hub, case: dict[str, Any], repo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.get("here"):
        assert cli.run([w for w in case["command"].split() if w != "--offline"]) == 0
        _spoil(repo, case.get("in_cache", {}))
    hub.asked.clear()
    hub.trouble = case.get("trouble")
    if repo in hub.repos:
        hub.repos[repo].gated = case.get("gated", False)
        _publish(hub, repo, case.get("published", {}))
        for path, how in case.get("answers", {}).items():
            hub.repos[repo].altered |= {path} if how == "altered" else set()
            hub.repos[repo].cut |= {} if how == "altered" else {path: how}
    if "token" in case:
        monkeypatch.setenv("HF_TOKEN", case["token"].format(token=TOKEN))
    if case.get("offline"):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    if "free" in case:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=case["free"]))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(
    hub: Hub,
    case: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    argv = case["command"].split()
    repo = argv[argv.index("--remote") + 1] if "--remote" in argv else argv[2]
    _prepare(hub, case, repo, monkeypatch)
    capsys.readouterr()
    status = cli.run(argv)
    out, err = capsys.readouterr()
    assert status == case.get("exit", 1), err
    assert not any(secret in out + err + caplog.text for secret in (TOKEN, "another-secret"))
    assert case.get("logged", "") in caplog.text
    if "fetched" in case:
        got = sorted(line.partition("/resolve/")[2].partition("/")[2] for line in hub.asked if "GET /owner" in line)
        assert got == sorted(case["fetched"])
    if status == 0:
        return _assert_right(hub, repo, Path(out.strip()), case)
    lines = err.splitlines()
    assert len(lines) == case.get("lines", 3)
    assert repo in lines[0] or len(lines) == 1
    assert case["why"].format(hub=hub.url) in lines[len(lines) // 2]
    assert case["do"].format(hub=hub.url) in lines[-1]
    usable = [c.id for c in checkpoints() if not c.problem] + [s.repo for s in on_this_machine() if not s.problem]
    assert (repo in usable) == case.get("usable", False)
    return None


def _assert_right(hub: Hub, repo: str, place: Path, case: dict[str, Any]) -> None:
    """What was printed is there, as the hub has it."""
    files = hub.repos[repo].commits[V1 if "v1" in case["command"] else MAIN]
    assert place.exists()
    folder, wanted = (place.parents[3], [SAE]) if place.suffix else (place, list(files))
    for path in wanted:
        if files[path] == b"not wanted":
            assert not (folder / path).exists()
        else:
            digests = {hashlib.sha256(c).hexdigest() for c in (files[path], (folder / path).read_bytes())}
            assert len(digests) == 1, path


def test_an_interrupted_download_goes_on_where_it_stopped(
    hub: Hub, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    files = hub.repos["owner/model"].commits[MAIN]
    blobs = Path(constants.HF_HUB_CACHE) / "models--owner--model" / "blobs"
    blobs.mkdir(parents=True)
    shard = files["model-1.safetensors"]
    part = blobs / f"{hashlib.sha256(shard).hexdigest()}.part"
    part.write_bytes(shard[:700_000])
    assert cli.run(["models", "pull", "owner/model"]) == 0
    assert hub.ranges == ["bytes=700000-"]
    assert f"model-1.safetensors, {len(shard) / 1e6:.2f} MB, 700 kB here" in caplog.text
    assert f"{(sum(map(len, files.values())) - 30 - 700_000) / 1e6:.2f} MB of it to fetch" in caplog.text
    assert (Path(capsys.readouterr().out.strip()) / "model-1.safetensors").read_bytes() == shard
    assert not part.exists()


def test_an_update_that_fails_leaves_the_older_copy_in_use(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["models", "pull", "owner/model"]) == 0
    before = capsys.readouterr().out.strip()
    repo = hub.repos["owner/model"]
    newer = commit("newer")
    repo.commits[newer], repo.refs["main"] = made_up_checkpoint(4), newer
    repo.altered.add("model-2.safetensors")
    assert cli.run(["models", "pull", "owner/model"]) == 1
    assert str(cached("owner/model", "config.json")) == f"{before}/config.json"
    repo.altered.clear()
    assert cli.run(["models", "pull", "owner/model"]) == 0
    assert cached("owner/model", "config.json") != Path(before) / "config.json"


def test_a_pin_is_kept_and_shown_until_it_is_taken_away(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    def used() -> str:
        found = cached("owner/model", "config.json")
        assert found is not None
        return found.parent.name

    for argv, means in ((["--revision", "v1"], V1), ([], V1), (["--revision", "main"], MAIN), ([], MAIN)):
        assert cli.run(["models", "pull", "owner/model", *argv]) == 0
        assert used() == means
        capsys.readouterr()
        assert cli.run(["models", "list"]) == 0
        shown = capsys.readouterr().out
        assert ("pinned to v1" in shown) == (means == V1)
    assert cli.run(["models", "pull", "owner/model", "--revision", V1]) == 0
    assert used() == V1


def test_models_list_says_what_can_be_served_and_why_others_cannot(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["models", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["MODEL", "demo"]
    for argv in (["--revision", "v1"], ["--revision", "main"]):
        assert cli.run(["models", "pull", "owner/model", *argv]) == 0
    assert cli.run(["models", "pull", "owner/llama"]) == 1
    capsys.readouterr()
    assert cli.run(["models", "list", "--json"]) == 0
    found = {(c["id"], c["revision"]): c for c in json.loads(capsys.readouterr().out)}
    main = found["owner/model", MAIN]
    assert (main["problem"], main["in_use"], main["refs"], main["dtypes"]) == (None, True, ["main"], ["F64"])
    sizes = {path: len(content) for path, content in hub.repos["owner/model"].commits[MAIN].items()}
    assert main["size_bytes"] == sum(sizes.values()) - 3 * len(b"not wanted")
    assert (found["owner/model", V1]["problem"], found["owner/model", V1]["in_use"]) == (None, False)
    assert "model_type is 'llama'" in found["owner/llama", MAIN]["problem"]
    _spoil("owner/model", {"model-2.safetensors": "cut"})
    assert cli.run(["models", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert sum("model-2.safetensors is damaged or not complete" in row for row in rows) == 1
    _spoil("owner/model", {"model-2.safetensors": "nothing"})
    assert cli.run(["models", "list"]) == 0
    assert "not complete: model-2.safetensors is missing" in capsys.readouterr().out


def test_sae_list_of_a_release_and_of_the_cache(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sae", "pull", "owner/saes", "--path", SAE]) == 0
    file = capsys.readouterr().out.strip()
    assert cli.run(["sae", "list", "--remote", "owner/saes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"owner/saes at {MAIN[:8]}: 6 SAEs, ")
    cells = [line.split() for line in lines[2:6]]
    assert [(row[0], row[1], row[4:]) for row in cells] == [
        ("3", "1k", ["9*", "141"]),
        ("3", "16k", ["71"]),
        ("3", "1m", ["7"]),
        ("10", "65k", ["20"]),
    ]
    assert lines[6].startswith("elsewhere: embedding/params.npz (")
    assert cli.run(["sae", "list", "--json"]) == 0
    bundled, local = json.loads(capsys.readouterr().out)
    assert bundled["repo"] == "demo"
    assert (local["file"], local["path"], local["features"], local["problem"]) == (file, SAE, 1024, None)
    assert local["place"] == {"layer": 3, "width": "1k", "average_l0": 9}
    assert (local["revision"], local["in_use"]) == (MAIN, True)
    assert cli.run(["sae", "list"]) == 0
    assert "1,024" in capsys.readouterr().out
    assert cli.run(["sae", "list", "--remote", "owner/saes", "--json"]) == 0
    assert sum(sae["here"] for sae in json.loads(capsys.readouterr().out)) == 1
