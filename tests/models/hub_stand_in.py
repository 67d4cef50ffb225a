"""A stand-in for the hub on loopback: its answers over real HTTP, and what can go wrong with them."""

import dataclasses
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_a-secret-that-must-not-be-shown"
LARGE = (".safetensors", ".npz", "tokenizer.json")  # kept in Git LFS, as on the hub


@dataclasses.dataclass
class Repo:
    """A repository: files by commit, commits by branch and tag, and how it answers."""

    commits: dict[str, dict[str, bytes]]
    refs: dict[str, str]
    gated: bool = False
    in_git: set[str] = dataclasses.field(default_factory=set)  # large files that were committed as plain ones
    cut: dict[str, int] = dataclasses.field(default_factory=dict)  # path → bytes after which answers break off
    altered: set[str] = dataclasses.field(default_factory=set)  # what a proxy changes on the way

    def is_large(self, path: str) -> bool:
        return path.endswith(LARGE) and path not in self.in_git


def commit(name: str) -> str:
    """A made-up commit."""
    return hashlib.sha1(name.encode()).hexdigest()


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(ThreadingHTTPServer):
    """Serves `repos`; `trouble` makes every answer a failure: an HTTP status, "html", or "no commit"."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repos: dict[str, Repo] = {}
        self.trouble: int | str | None = None
        self.asked: list[str] = []
        self.ranges: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_args: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.server.asked.append(f"HEAD {self.path}")
        self._answer(body=False)

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)  # a proxy is asked for whole addresses
        token = self.headers.get("Authorization")
        if self.server.trouble == "html":
            return self._send(200, b"<html>please log in</html>", {"Content-Type": "text/html"}, body)
        if isinstance(self.server.trouble, int):
            return self._send(self.server.trouble, b"", {}, body)
        if token and TOKEN not in token:
            return self._send(401, b"", {"X-Error-Message": "Invalid credentials in Authorization header"}, body)
        found = re.match(r"/(api/models/)?(\w+/[\w.-]+)(?:/(\w+)/([^/]+)/?(.*))?$", path)
        repo = self.server.repos.get(found[2]) if found else None
        if found is None or repo is None:
            return self._send(401, b"", {"X-Error-Code": "RepoNotFound"}, body)
        at = repo.refs.get(found[4] or "main", found[4])
        if at not in repo.commits:
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"}, body)
        if found[1]:
            return self._api(repo, found[2], at, found[3], found[5], body)
        if repo.gated:
            return self._send(403 if token else 401, b"", {"X-Error-Code": "GatedRepo"}, body)
        return self._file(repo, at, found[5], body)

    def _api(self, repo: Repo, name: str, at: str, what: str | None, folder: str, body: bool) -> None:
        files = repo.commits[at]
        if what != "tree":
            return self._json({"id": name, "sha": at, "siblings": [{"rfilename": f} for f in files]}, body)
        recursive = "recursive=true" in self.path.lower()
        entries = {}
        for path, content in files.items():
            if folder and not path.startswith(f"{folder}/"):
                continue
            head, _, rest = path.removeprefix(f"{folder}/" if folder else "").partition("/")
            if rest and not recursive:
                entries[head] = {"type": "directory", "path": f"{folder}/{head}" if folder else head, "oid": "0" * 40}
            else:
                entries[path] = _entry(repo, path, content)
        return self._json(list(entries.values()), body)

    def _file(self, repo: Repo, at: str, path: str, body: bool) -> None:
        content = repo.commits[at].get(path)
        if content is None:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": at}, body)
        tag = hashlib.sha256(content).hexdigest() if repo.is_large(path) else git_oid(content)
        headers = {"ETag": f'"{tag}"', "Accept-Ranges": "bytes"}
        if self.server.trouble != "no commit":
            headers["X-Repo-Commit"] = at
        status, cut = 200, repo.cut.get(path) if body else None
        if path in repo.altered:
            content = bytes([content[0] ^ 1]) + content[1:]
        if (wanted := self.headers.get("Range")) and body:
            self.server.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            status, content = 206, content[start:]
        return self._send(status, content, headers, body, cut)

    def _json(self, value: object, body: bool) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"}, body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool, cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content[:cut])
        if cut is not None and cut < len(content):
            self.close_connection = True


def _entry(repo: Repo, path: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": git_oid(content)}
    if repo.is_large(path):
        sha256 = hashlib.sha256(content).hexdigest()
        entry |= {"oid": git_oid(b"pointer"), "lfs": {"oid": sha256, "size": len(content), "pointerSize": 130}}
    return entry


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub without repositories, until the end of the block."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
