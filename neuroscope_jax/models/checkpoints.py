"""The checkpoints on this machine that can be served, and what is wrong with the others."""

import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
from huggingface_hub import CachedRepoInfo, constants
from huggingface_hub.errors import CacheNotFound

from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub_pins, registry
from neuroscope_jax.models.hub import DEMO, DEMO_FOLDER
from neuroscope_jax.models.hub_cache import INDEX, SINGLE, cached, missing_files, weight_files
from neuroscope_jax.models.intact import problem
from neuroscope_jax.tensor_file import tensors

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """One revision of a model."""

    id: str  # what --model takes
    revision: str | None  # the hub's commit
    refs: list[str]  # branches and tags that were fetched under this commit
    pinned: str | None  # the revision that `pull --revision` was given, where it is this commit
    in_use: bool  # the revision that --model means now
    model_type: str | None
    dtypes: list[str]  # of the tensors, as safetensors names them
    size_bytes: int
    problem: str | None  # why it cannot be served
    path: str


def checkpoints() -> list[Checkpoint]:
    """The bundled model and every revision in the Hugging Face cache that has a config.json, by name."""
    bundled = DEMO_FOLDER / "model"
    size = sum(file.stat().st_size for file in bundled.iterdir())
    found = [_checkpoint(DEMO, bundled, size, in_use=True)]
    for repo in cached_repos():
        found += _revisions(repo)
    return found


def cached_repos() -> list[CachedRepoInfo]:
    """The model repositories of the Hugging Face cache by name; what is damaged in it is logged."""
    try:
        scanned = huggingface_hub.scan_cache_dir(constants.HF_HUB_CACHE)
    except CacheNotFound:
        return []
    for warning in scanned.warnings:
        logger.warning("left out: %s", str(warning).partition("\n")[0])
    return sorted((repo for repo in scanned.repos if repo.repo_type == "model"), key=lambda repo: repo.repo_id)


def _revisions(repo: CachedRepoInfo) -> Iterator[Checkpoint]:
    used, pin = cached(repo.repo_id, "config.json"), hub_pins.pin_of(repo.repo_id)
    for revision in sorted(repo.revisions, key=lambda r: -r.last_modified):
        folder = revision.snapshot_path
        if (folder / "config.json").exists():
            commit = revision.commit_hash
            found = _checkpoint(repo.repo_id, folder, revision.size_on_disk, bool(used and used.parent == folder))
            pinned = pin.revision if pin and pin.commit == commit else None
            yield dataclasses.replace(found, revision=commit, refs=sorted(revision.refs), pinned=pinned)


def _checkpoint(name: str, folder: Path, size: int, in_use: bool) -> Checkpoint:
    try:
        config = registry.read_config(folder)
        model_type, wrong = str(config.get("model_type")), registry.unknown_family(config)
    except UserError as error:
        model_type, wrong = None, str(error)
    wrong = wrong or _incomplete(folder)
    dtypes = [] if wrong else sorted({dtype for file in weight_files(folder) for dtype in _dtypes(folder / file)})
    return Checkpoint(name, None, [], None, in_use, model_type, dtypes, size, wrong, str(folder))


def _incomplete(folder: Path) -> str | None:
    missing = missing_files(folder)
    if missing:
        return f"not complete: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    names = ["tokenizer.json", *([] if (folder / SINGLE).exists() else [INDEX]), *weight_files(folder)]
    wrong = ((name, problem(folder / name)) for name in names)
    return next((f"{name} is {why}" for name, why in wrong if why), None)


def _dtypes(file: Path) -> set[str]:
    return {tensor.dtype for tensor in tensors(file).values()}
