"""What the Hugging Face cache holds of a repository, without any network."""

import json
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HFValidationError

from neuroscope_jax.models import hub_pins

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def cached(repo: str, file: str, commit: str | None = None) -> Path | None:
    """A file in the cache: of `commit`, else of the commit the repository is pinned to, else of its main branch."""
    try:
        found = huggingface_hub.try_to_load_from_cache(repo, file, revision=commit or hub_pins.commit_of(repo))
    except HFValidationError:  # no hub id: `pull` says so
        return None
    return Path(found) if isinstance(found, str) else None


def missing_files(folder: Path) -> list[str]:
    """What a checkpoint folder lacks of config, tokenizer and weights; a shard named in the index counts."""
    wanted = ["config.json", "tokenizer.json", *weight_files(folder)]
    return [name for name in wanted if not (folder / name).exists()]


def weight_files(folder: Path) -> list[str]:
    """The names of a checkpoint's weight files, there or not: the one file, or the shards of the index."""
    index = folder / INDEX
    if (folder / SINGLE).exists() or not index.exists():
        return [SINGLE]
    try:
        return sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # the file is there, and the loader says what is wrong with it
