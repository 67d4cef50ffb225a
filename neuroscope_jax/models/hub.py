"""The one door to model and SAE files: a local folder, the bundled pair, the Hugging Face cache, then the hub.

HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN, HF_HOME and the proxy variables are huggingface_hub's own, as it documents them.
"""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils.tqdm import disable_progress_bars

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.hub_errors import explain, failure

DEMO = "demo"
DEMO_FOLDER = Path(__file__).parents[1] / "demo" / "pair"
WANTED = [
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*",
    "generation_config.json",
    "chat_template*",
]
PATIENCE = 5.0  # seconds for the hub's first answer

T = TypeVar("T")


def model_folder(model_id: str) -> Path:
    """The folder of a checkpoint in Hugging Face layout; downloads what is not in the cache.

    `model_id` is "demo", a folder, or a hub id. Raises UserError in three lines: what, why, what to do.
    """
    if model_id == DEMO:
        return DEMO_FOLDER / "model"
    if _is_local(model_id):
        return _existing(Path(model_id).expanduser(), model_id)
    config = _cached(model_id, "config.json")
    return config.parent if config and not missing_files(config.parent) else pull(model_id)


def sae_file(repo: str, path: str) -> Path:
    """One file of an SAE release, found like `model_folder`; `repo` is "demo", a folder, or a hub id."""
    if repo == DEMO:
        return _existing(DEMO_FOLDER / "sae" / path, f"{repo}/{path}")
    if _is_local(repo):
        return _existing(Path(repo).expanduser() / path, f"{repo}/{path}")
    return _cached(repo, path) or pull_sae(repo, path)


def sae_on_this_machine(repo: str, path: str) -> Path | None:
    """The file that `sae_file` would return without downloading, None where there is none."""
    if repo == DEMO or _is_local(repo):
        folder = DEMO_FOLDER / "sae" if repo == DEMO else Path(repo).expanduser()
        return folder / path if (folder / path).exists() else None
    return _cached(repo, path)


def revision(path: Path) -> str | None:
    """The hub's commit that a file or folder of the Hugging Face cache belongs to, None for any other place."""
    above = [path, *path.parents]
    return next((folder.name for folder in above if folder.parent.name == "snapshots"), None)


def pull(model_id: str) -> Path:
    """Download a checkpoint, or what changed of it, into the Hugging Face cache."""
    fetch = functools.partial(huggingface_hub.snapshot_download, model_id, allow_patterns=WANTED)
    folder = Path(_from_hub(model_id, "config.json", fetch))
    missing = missing_files(folder)
    if missing:
        raise failure(model_id, f"it holds no {', '.join(missing)}", "choose a checkpoint with safetensors weights")
    return folder


def pull_sae(repo: str, path: str) -> Path:
    """Download one file of an SAE release into the Hugging Face cache."""
    return Path(_from_hub(repo, path, functools.partial(huggingface_hub.hf_hub_download, repo, path)))


def missing_files(folder: Path) -> list[str]:
    """What a checkpoint folder lacks of config, tokenizer and weights; a shard named in the index counts."""
    wanted = ["config.json", "tokenizer.json"]
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists() or not index.exists():
        wanted.append("model.safetensors")
    else:
        wanted += _shards(index)
    return [name for name in wanted if not (folder / name).exists()]


def _shards(index: Path) -> list[str]:
    try:
        return sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # the file is there, and the loader says what is wrong with it


def _from_hub(repo: str, first: str, fetch: Callable[[], T]) -> T:
    """Ask for one file's metadata without retries, so that refusals and dead networks show at once; then `fetch`."""
    if not sys.stderr.isatty() and constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
        disable_progress_bars()
    try:
        huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(repo, first), timeout=_patience())
        return fetch()
    except Exception as error:  # huggingface_hub raises a dozen kinds, its HTTP library and the disk some more
        cached = _cached(repo, first)
        absent = missing_files(cached.parent) if cached else [first]
        raise explain(repo, absent, error) from error


def _patience() -> float:
    """Seconds; HF_HUB_ETAG_TIMEOUT goes first where it is set."""
    chosen = constants.HF_HUB_ETAG_TIMEOUT
    return PATIENCE if chosen == constants.DEFAULT_ETAG_TIMEOUT else float(chosen)


def _cached(repo: str, file: str) -> Path | None:
    try:
        found = huggingface_hub.try_to_load_from_cache(repo, file)
    except HFValidationError:  # no hub id: `pull` says so
        return None
    return Path(found) if isinstance(found, str) else None


def _is_local(name: str) -> bool:
    return name.startswith(("/", "./", "../", "~")) or Path(name).exists()


def _existing(path: Path, name: str) -> Path:
    if path.exists():
        return path
    near = sorted(entry.name for entry in path.parent.iterdir())[:5] if path.parent.is_dir() else []
    seen = f"beside it there are {', '.join(near)}" if near else f"{path.parent} does not exist or is empty"
    raise UserError(f"Cannot find {name}.\nWhy: there is no {path}; {seen}.\nDo: check the path, or try --config demo.")
