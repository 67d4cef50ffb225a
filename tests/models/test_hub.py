"""The door to files: local folders, the cache, a stand-in for the hub on loopback, and no network at all."""

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_a-secret-that-must-not-be-shown"
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors.index.json": b'{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}',
    "model-1.safetensors": b"one",
    "model-2.safetensors": b"two",
    "pytorch_model.bin": b"not wanted",
    "layer_3/params.npz": b"npz",
}
ASK_MODEL = "hub.model_folder(sys.argv[1])"
ASK_SAE = "hub.sae_file(sys.argv[1], sys.argv[2])"


class Handler(BaseHTTPRequestHandler):
    """Answers as the hub does for owner/open, owner/gated (terms not accepted) and nothing else."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.server.asked.append(f"HEAD {self.path}")  # type: ignore[attr-defined]
        self._answer(body=False)

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")  # type: ignore[attr-defined]
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        token = self.headers.get("Authorization")
        if path.startswith("/owner/gated/"):
            return self._send(403 if token else 401, b"", {"X-Error-Code": "GatedRepo"}, body)
        if path == "/api/models/owner/open/revision/main":
            return self._json({"id": "owner/open", "sha": COMMIT, "siblings": []}, body)
        if path.startswith("/api/models/owner/open/tree/"):
            return self._json([{"type": "file", "path": p, "size": len(c), "oid": "0"} for p, c in FILES.items()], body)
        _, _, name = path.partition("/owner/open/resolve/")
        content = FILES.get(name.partition("/")[2])
        if content is not None:
            tag = hashlib.sha256(content).hexdigest()
            return self._send(200, content, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}, body)
        code = "EntryNotFound" if name else "RepoNotFound"
        return self._send(404 if name else 401, b"", {"X-Error-Code": code}, body)

    def _json(self, value: object, body: bool) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"}, body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


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


def endpoint(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_a_model_is_fetched_once_and_then_found_without_the_network(
    server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    folder, refused = ask(ASK_MODEL, "owner/open", home=tmp_path, HF_ENDPOINT=endpoint(server))
    assert not refused
    wanted = {name for name in FILES if name not in ("pytorch_model.bin", "layer_3/params.npz")}
    assert {p.name: p.read_bytes() for p in Path(folder).iterdir()} == {name: FILES[name] for name in wanted}
    asked = len(server.asked)  # type: ignore[attr-defined]
    assert ask(ASK_MODEL, "owner/open", home=tmp_path, HF_ENDPOINT=endpoint(server)) == (folder, [])
    assert ask(ASK_MODEL, "owner/open", home=tmp_path, HF_HUB_OFFLINE="1") == (folder, [])
    assert len(server.asked) == asked  # type: ignore[attr-defined]
    (Path(folder) / "model-2.safetensors").unlink()
    _, refused = ask(ASK_MODEL, "owner/open", home=tmp_path, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE" in refused[1]
    assert "model-2.safetensors" in refused[1]
    assert ask(ASK_MODEL, "owner/open", home=tmp_path, HF_ENDPOINT=endpoint(server)) == (folder, [])
    assert (Path(folder) / "model-2.safetensors").read_bytes() == b"two"


def test_an_sae_file_is_fetched_alone(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    arguments = ("owner/open", "layer_3/params.npz")
    file, refused = ask(ASK_SAE, *arguments, home=tmp_path, HF_ENDPOINT=endpoint(server))
    assert not refused
    assert Path(file).read_bytes() == b"npz"
    assert ask(ASK_SAE, *arguments, home=tmp_path, HF_HUB_OFFLINE="1") == (file, [])
    assert [p.name for p in Path(file).parents[1].iterdir()] == ["layer_3"]


@pytest.mark.parametrize(
    ("repo", "token", "why", "do"),
    [
        ("owner/gated", None, "no token was given (401)", "create a token"),
        ("owner/gated", TOKEN, "has not been granted access (403)", "accept the terms at"),
        ("owner/absent", None, "no such repository, or it is private", "check the name"),
        ("not an id", None, "neither an existing folder nor a hub id", "check the name"),
    ],
)
def test_refusals_in_three_lines(
    server: ThreadingHTTPServer, tmp_path: Path, repo: str, token: str | None, why: str, do: str
) -> None:
    given = {"HF_TOKEN": token} if token else {}
    for request in ((ASK_MODEL, repo), (ASK_SAE, repo, "layer_3/params.npz")):
        _, lines = ask(*request, home=tmp_path, HF_ENDPOINT=endpoint(server), **given)
        assert len(lines) == 3
        assert repo in lines[0]
        assert why in lines[1]
        assert do in lines[2]
        assert "--config demo" in lines[2]
        assert TOKEN not in "".join(lines)


def test_an_absent_file_of_an_existing_release_is_named(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    _, lines = ask(ASK_SAE, "owner/open", "layer_9/params.npz", home=tmp_path, HF_ENDPOINT=endpoint(server))
    assert "holds no layer_9/params.npz" in lines[1]
    assert f"{endpoint(server)}/owner/open/tree/main" in lines[2]


def test_without_any_network(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        dead = endpoint(closed)
    for where in (dead, "http://name.invalid"):
        _, lines = ask(ASK_MODEL, "owner/open", home=tmp_path, HF_ENDPOINT=where)
        assert len(lines) == 3
        assert lines[1].startswith(f"Why: no connection to {where} (")
        assert "--config demo" in lines[2]


def test_local_folders_are_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.model_folder(str(tmp_path)) == tmp_path
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "params.npz").touch()
    monkeypatch.chdir(tmp_path)
    assert hub.model_folder("./demo") == Path("demo")
    assert hub.sae_file("./demo", "params.npz") == Path("demo/params.npz")
    assert hub.model_folder("demo") == hub.DEMO_FOLDER / "model"  # the name is the bundled pair's, wherever one stands


def test_local_paths_that_do_not_exist_say_what_is_beside_them(tmp_path: Path) -> None:
    (tmp_path / "model-a").mkdir()
    with pytest.raises(UserError, match="model-a") as caught:
        hub.model_folder(str(tmp_path / "model-b"))
    assert len(str(caught.value).splitlines()) == 3
    with pytest.raises(UserError, match="does not exist or is empty"):
        hub.sae_file(str(tmp_path), "layer_3/params.npz")


def test_missing_files_counts_the_shards(tmp_path: Path) -> None:
    assert hub.missing_files(tmp_path) == ["config.json", "tokenizer.json", "model.safetensors"]
    for name in ("config.json", "tokenizer.json", "model-1.safetensors"):
        (tmp_path / name).touch()
    (tmp_path / "model.safetensors.index.json").write_bytes(FILES["model.safetensors.index.json"])
    assert hub.missing_files(tmp_path) == ["model-2.safetensors"]
