"""One large file from the hub into the cache, going on where an earlier try stopped.

huggingface_hub starts a file anew after an interruption. What it writes is kept here under a name of its own, and put
where the library looks for it (blobs/SHA-256) when it is whole and its hash is right; the library does the rest.
"""

import contextlib
import hashlib
import logging
from pathlib import Path

import huggingface_hub
from filelock import FileLock
from huggingface_hub import constants
from huggingface_hub.file_download import http_get, repo_folder_name
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, not in __all__

from neuroscope_jax.errors import UserError

logger = logging.getLogger(__name__)


def fetch_blob(repo: str, file: RepoFile, commit: str) -> None:
    """Bring the content of a Git LFS file into the cache, replacing what is there under its hash.

    Raises what huggingface_hub does, and UserError where the content is not what its hash says.
    """
    assert file.lfs is not None
    url = huggingface_hub.hf_hub_url(repo, file.path, revision=commit)
    if huggingface_hub.get_hf_file_metadata(url).etag != file.lfs.sha256:
        return  # a mirror with names of its own, under which the library looks and fetches by itself
    blob = _blobs(repo) / file.lfs.sha256
    blob.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock(blob)):
        part = unfinished(repo, file)
        _complete(part, url, file)
        _check(part, file)
        part.replace(blob)
    logger.info("%s: whole, its SHA-256 is right", file.path)


def unfinished(repo: str, file: RepoFile) -> Path:
    """Where the beginning of a file is kept while its rest is missing."""
    assert file.lfs is not None
    return _blobs(repo) / f"{file.lfs.sha256}.part"


def fetched(repo: str, file: RepoFile) -> int:
    """Bytes of a file that an interrupted download has left."""
    if file.lfs is None:
        return 0
    with contextlib.suppress(OSError):
        return min(unfinished(repo, file).stat().st_size, file.size)
    return 0


def _complete(part: Path, url: str, file: RepoFile) -> None:
    part.touch()
    with part.open("r+b") as open_part:
        if part.stat().st_size > file.size:
            open_part.truncate(0)
        start = open_part.seek(0, 2)
        if start:
            logger.info("%s: going on after %s bytes", file.path, f"{start:,}")
        http_get(
            url,
            open_part,
            resume_size=start,
            headers=build_hf_headers(),
            expected_size=file.size,
            displayed_filename=file.path,
        )


def _check(part: Path, file: RepoFile) -> None:
    assert file.lfs is not None
    with part.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != file.lfs.sha256:
        part.unlink()
        raise UserError(
            f"{file.path}: what came has SHA-256 {found}, expected {file.lfs.sha256}; it is not kept. "
            "Run the same command again; if it stays so, a proxy or mirror changes the file"
        )


def _blobs(repo: str) -> Path:
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model") / "blobs"


def _lock(blob: Path) -> Path:
    folder = blob.parents[2] / ".locks" / blob.parents[1].name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{blob.name}.part.lock"
