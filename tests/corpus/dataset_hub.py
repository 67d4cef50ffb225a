"""A stand-in for the hub's datasets on loopback: the answers that the `datasets` library asks for, over real HTTP."""

import hashlib
import io
import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler

import pyarrow
from pyarrow import parquet

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SIZES = """dataset_info:
  features:
  - name: text
    dtype: string
  splits:
  - name: train
    num_examples: {rows}
    num_bytes: 1000
  download_size: 1000
  dataset_size: 1000
"""


def table(texts: Sequence[object], name: str = "text") -> bytes:
    """A parquet file of one column."""
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({name: texts}), file)
    return file.getvalue()


def card(configs: dict[str, list[str]], sizes: str = "") -> bytes:
    """A README with the front matter that names configurations, their splits and the files of these."""
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        lines += [f"  - split: {split}\n    path: {config}/{split}-*" for split in splits]
    return "\n".join([*lines, sizes + "---", ""]).encode()


def _wikitext(first: int, count: int) -> bytes:
    return table(
        [line for i in range(first, first + count) for line in ("", f" = Title {i} = \n", "", f" 1 @,@ {i:03} \n")]
    )


REPOS: dict[str, dict[str, bytes]] = {
    "Salesforce/wikitext": {
        "README.md": card({"wikitext-103-raw-v1": ["test", "train"], "wikitext-2-raw-v1": ["train"]}),
        "wikitext-103-raw-v1/test-00000-of-00001.parquet": _wikitext(900, 1),
        "wikitext-103-raw-v1/train-00000-of-00002.parquet": _wikitext(0, 20),
        "wikitext-103-raw-v1/train-00001-of-00002.parquet": _wikitext(20, 20),
        "wikitext-2-raw-v1/train-00000-of-00001.parquet": _wikitext(0, 2),
    },
    "owner/rows": {
        "README.md": card({"default": ["train"]}, SIZES.format(rows=30)),
        "default/train-00000-of-00001.parquet": table([f"row {i}" if i % 3 else None for i in range(30)]),
    },
    "owner/large": {  # its card tells no size
        "README.md": card({"default": ["train"]}),
        **{
            f"default/train-0000{shard}-of-00003.parquet": table([" ", *(f"{shard} row {i}" for i in range(1, 9))])
            for shard in range(3)
        },
    },
    "owner/numbers": {
        "README.md": card({"default": ["train"]}),
        "default/train-00000-of-00001.parquet": table([1, 2], "n"),
    },
    "owner/broken": {
        "README.md": card({"default": ["train"]}, SIZES.format(rows=2)),
        "default/train-00000-of-00001.parquet": b"PAR1 and no more",
    },
    "owner/torn": {
        "README.md": card({"default": ["train"]}),
        "default/train-00000-of-00001.parquet": b"PAR1 and no more",
    },
    "owner/empty": {"README.md": b"nothing here"},
}


class Handler(BaseHTTPRequestHandler):
    """Answers for REPOS and for owner/gated, whose terms nobody has accepted."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/datasets/owner/gated/"):
            token = self.headers.get("Authorization")
            return self._send(403 if token else 401, b"", {"X-Error-Code": "GatedRepo"}, body)
        for repo, files in REPOS.items():
            api, file = f"/api/datasets/{repo}", f"/datasets/{repo}/resolve/"
            if path.startswith(f"{api}/tree/{COMMIT}"):
                return self._tree(files, path.removeprefix(f"{api}/tree/{COMMIT}").strip("/"), body)
            if path.startswith(api):
                return self._json(
                    {"id": repo, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}, body
                )
            if path.startswith(file):
                return self._file(files.get(path.removeprefix(file).partition("/")[2]), body)
        return self._send(401, b"", {"X-Error-Code": "RepoNotFound"}, body)

    def _tree(self, files: dict[str, bytes], folder: str, body: bool) -> None:
        """What is directly in a folder."""
        entries = {}
        for name, content in files.items():
            inside = name.removeprefix(f"{folder}/") if folder else name
            if folder and inside == name:
                continue
            head, _, rest = inside.partition("/")
            path = f"{folder}/{head}" if folder else head
            kind = {"type": "directory", "size": 0} if rest else {"type": "file", "size": len(content)}
            entries[path] = {"path": path, "oid": hashlib.sha1(content).hexdigest(), **kind}
        self._json(list(entries.values()), body)

    def _file(self, content: bytes | None, body: bool) -> None:
        if content is None:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body)
        tag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if wanted := self.headers.get("Range"):
            first, last = (int(end) if end else None for end in wanted.removeprefix("bytes=").split("-"))
            part = content[first : None if last is None else last + 1]
            headers["Content-Range"] = f"bytes {first}-{(first or 0) + len(part) - 1}/{len(content)}"
            return self._send(206, part, headers, body)
        return self._send(200, content, headers, body)

    def _json(self, value: object, body: bool) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"}, body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)
