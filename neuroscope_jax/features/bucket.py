"""Anonymous reading of an S3 bucket: what lies under a prefix, and the lines of a gzip'd file.

HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are the HTTP library's own, as it documents them.
"""

import contextlib
import gzip
import logging
import tempfile
import time
import urllib.parse
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import httpx2

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import what_it_is

logger = logging.getLogger(__name__)

PATIENCE = httpx2.Timeout(30.0, connect=5.0)  # seconds
PAUSES = (1.0, 4.0)  # seconds before a file is tried again; a listing is not, so that a dead network shows at once
LINE_LIMIT = 64 << 20  # bytes; no record comes near it
AGAIN = "run the same command again, later if the server is busy; nothing was written"


@dataclass(frozen=True)
class Item:
    """A file of the bucket."""

    key: str
    size: int  # bytes
    etag: str

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]


class Bucket:
    """A bucket at an http(s) address. A context manager, which closes its connections."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        if not self.address.startswith(("http://", "https://")):
            raise UserError(f"{address!r} is no address of a bucket; expected http:// or https:// and a host")
        try:
            self._client = httpx2.Client(timeout=PATIENCE, follow_redirects=True)
        except (ValueError, ImportError) as error:  # a proxy variable that cannot be one
            raise self._failure(self.address, str(error), "correct HTTPS_PROXY, HTTP_PROXY and ALL_PROXY") from error

    def __enter__(self) -> "Bucket":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def items(self, prefix: str) -> list[Item]:
        """All files under a prefix, over as many pages as the listing has. Raises UserError in three lines."""
        query = {"list-type": "2", "prefix": prefix}
        items: list[Item] = []
        seen: set[str | None] = set()
        while True:
            page = self._page(query)
            items += [_item(element) for element in page.iterfind("{*}Contents")]
            if page.findtext("{*}IsTruncated", "false").strip() != "true":
                return items
            token = page.findtext("{*}NextContinuationToken")
            if not token or token in seen:
                raise self._failure(prefix, "the listing says that it goes on, but not where", AGAIN)
            seen.add(token)
            query["continuation-token"] = token

    def lines(self, item: Item) -> Iterator[bytes]:
        """The lines of a gzip'd file, which is downloaded whole first. Raises UserError where it cannot be read."""
        with self._explained(item.key):
            temporary = tempfile.TemporaryDirectory()
        with temporary as folder:
            path = Path(folder) / "file.gz"
            self._download(item, path)
            try:
                if not path.stat().st_size:
                    raise EOFError("not a byte")  # which the library takes for a file without lines
                with gzip.open(path) as file:
                    while line := file.readline(LINE_LIMIT):
                        yield line
            except (OSError, EOFError, zlib.error) as error:
                why = f"what came is {what_it_is(path)}; expected gzip ({error})"
                raise self._failure(item.key, why, AGAIN) from error

    def _page(self, query: dict[str, str]) -> ElementTree.Element:
        with self._explained(query["prefix"]):
            response = self._client.get(f"{self.address}/", params=query)
            response.raise_for_status()
        try:
            page = ElementTree.fromstring(response.content)
        except ElementTree.ParseError:
            page = ElementTree.Element("")
        if page.tag.rpartition("}")[2] != "ListBucketResult":
            why = "what came is no listing of a bucket (a login or error page in its place?)"
            raise self._failure(query["prefix"], why, "check the address and the network; nothing was written")
        return page

    def _download(self, item: Item, path: Path) -> None:
        for pause in PAUSES:
            try:
                return self._try(item, path)
            except UserError as error:
                if not _may_pass(error):
                    raise
                logger.warning("%s: trying again in %.0f s (%s)", item.key, pause, str(error).splitlines()[1])
                time.sleep(pause)
        return self._try(item, path)

    def _try(self, item: Item, path: Path) -> None:
        url = f"{self.address}/{urllib.parse.quote(item.key)}"
        # As stored: a layer of compression of the transfer's own would be taken for the file's.
        plain = {"Accept-Encoding": "identity"}
        with self._explained(item.key), self._client.stream("GET", url, headers=plain) as response:
            response.raise_for_status()
            with path.open("wb") as file:
                for chunk in response.iter_raw():
                    file.write(chunk)
        size = path.stat().st_size
        if size != item.size:
            why = f"{size:,} bytes came ({what_it_is(path)}), the listing says {item.size:,}"
            raise self._failure(item.key, why, AGAIN)

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except httpx2.HTTPStatusError as error:
            why = f"the server answered HTTP {error.response.status_code}"
            raise self._failure(what, why, AGAIN) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = f"no connection, or a broken one ({type(error).__name__}: {error})"
            raise self._failure(what, why, "check the network and HTTPS_PROXY; nothing was written") from error
        except OSError as error:
            why = f"{error.strerror or error} ({tempfile.gettempdir()})"
            raise self._failure(what, why, "make room, or set TMPDIR to another disk") from error

    def _failure(self, what: str, why: str, remedy: str) -> UserError:
        return UserError(f"Cannot get {what} from {self.address}.\nWhy: {why}.\nDo: {remedy}.")


def _item(element: ElementTree.Element) -> Item:
    size = element.findtext("{*}Size", "").strip()
    etag = element.findtext("{*}ETag", "").strip().strip('"')
    return Item(element.findtext("{*}Key", ""), int(size) if size.isdigit() else -1, etag)


def _may_pass(error: UserError) -> bool:
    """True where another try may go better: a broken connection, a busy server, a file cut short."""
    cause = error.__cause__
    if isinstance(cause, httpx2.HTTPStatusError):
        return cause.response.status_code == 429 or cause.response.status_code >= 500
    return cause is None or isinstance(cause, httpx2.TransportError)
