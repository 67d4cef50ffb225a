"""A stand-in for Neuronpedia's bucket over real HTTP: it lists what it holds page by page and serves it, or fails."""

import contextlib
import gzip
import hashlib
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

PREFIX = "v1/gemma-2-2b/20-gemmascope-res-16k/explanations/"
HTML = b"<!DOCTYPE html><html><body>Please log in<br></body></html>"
LISTING = "(listing)"  # the listing's key among the faults

Fault = Callable[["Handler", bytes], None]


def record(index: int | str, description: str | None, **fields: object) -> dict[str, object]:
    """A line of the export as it comes, its embedding included."""
    return {
        "id": f"id-{index}",
        "modelId": "gemma-2-2b",
        "layer": "20-gemmascope-res-16k",
        "index": str(index),
        "authorId": "author",
        "description": description,
        "embedding": [0.25] * 256,
        "typeName": "np_acts-logits-general",
        "explanationModelName": "gemini-2.5-flash-lite",
        "umap_x": None,
        **fields,
    }


def batch(*records: dict[str, object]) -> bytes:
    """Records as a file of the export."""
    return gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode())


def status(code: int) -> Fault:
    """Answers with an error."""
    return lambda handler, body: handler.send(code, b"<Error><Code>No</Code></Error>")


def instead(content: bytes) -> Fault:
    """Answers with something else."""
    return lambda handler, body: handler.send(200, content)


def broken_off(handler: "Handler", body: bytes) -> None:
    """Closes the connection in the middle of the answer."""
    handler.send(200, body[: len(body) // 2], length=len(body))
    handler.close_connection = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "StandIn"

    def log_message(self, *_args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        address = urllib.parse.urlsplit(self.path)
        key = urllib.parse.unquote(address.path.lstrip("/"))
        query = dict(urllib.parse.parse_qsl(address.query))
        faults = self.server.faults.get(key or LISTING)
        if not key and not faults:
            return self.send(200, self._listing(query))
        body = self.server.files.get(key)
        if faults:
            (faults.pop(0) if len(faults) > 1 else faults[0])(self, body or b"")
        elif body is None:
            self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self.send(200, body)
        return None

    def send(self, code: int, body: bytes, length: int | None = None) -> None:
        self.send_response(code)
        self.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _listing(self, query: dict[str, str]) -> bytes:
        keys = sorted(key for key in self.server.files if key.startswith(query["prefix"]))
        start = int(query.get("continuation-token", "token-0").removeprefix("token-"))
        end = start + self.server.page_size
        more = end < len(keys)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2030-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{hashlib.md5(self.server.files[key]).hexdigest()}&quot;</ETag>"
            f"<Size>{len(self.server.files[key])}</Size></Contents>"
            for key in keys[start:end]
        )
        token = f"<NextContinuationToken>token-{end}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{contents}</ListBucketResult>"
        ).encode()


class StandIn(ThreadingHTTPServer):
    """Holds `files` by key. A key's `faults` are taken in turn, the last one stays."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.asked: list[str] = []
        self.page_size = 1000

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: clients that leave before the answer ends are among what is tested."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def put(self, *batches: bytes) -> None:
        """The batches of the labels, from 0 on."""
        self.files |= {f"{PREFIX}batch-{number}.jsonl.gz": content for number, content in enumerate(batches)}


def ok(handler: Handler, body: bytes) -> None:
    """Answers as if nothing had been."""
    handler.send(200, body)


@contextlib.contextmanager
def running() -> Iterator[StandIn]:
    """A stand-in that serves while the block runs."""
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
