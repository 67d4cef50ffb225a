"""The one door to model and SAE files: a local folder, the bundled pair, the Hugging Face cache, then the hub.

HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN, HF_HOME and the proxy variables are huggingface_hub's own, as it documents them.
"""

import fnmatch
import functools
import logging
import os
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.hf_api import RepoFile

from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub_pins
from neuroscope_jax.models.hub_cache import INDEX, SINGLE, cached, missing_files, weight_files
from neuroscope_jax.models.hub_download import Wanted, download
from neuroscope_jax.models.hub_errors import failure, offline

logger = logging.getLogger(__name__)

DEMO = "demo"
DEMO_FOLDER = Path(__file__).parents[1] / "demo" / "pair"
BESIDE_WEIGHTS = ["config.json", INDEX, "tokenizer*", "generation_config.json", "chat_template*"]


def model_folder(model_id: str) -> Path:
    """The folder of a checkpoint in Hugging Face layout; downloads what is not in the cache.

    `model_id` is "demo", a folder, or a hub id. Raises UserError in three lines: what, why, what to do.
    """
    if model_id == DEMO:
        return DEMO_FOLDER / "model"
    if _is_local(model_id):
        return _existing(Path(model_id).expanduser(), model_id)
    _say_pin(model_id)
    config = cached(model_id, "config.json")
    return config.parent if config and not missing_files(config.parent) else pull(model_id)


def sae_file(repo: str, path: str) -> Path:
    """One file of an SAE release, found like `model_folder`; `repo` is "demo", a folder, or a hub id."""
    if repo == DEMO:
        return _existing(DEMO_FOLDER / "sae" / path, f"{repo}/{path}")
    if _is_local(repo):
        return _existing(Path(repo).expanduser() / path, f"{repo}/{path}")
    _say_pin(repo)
    return cached(repo, path) or pull_sae(repo, path)


def sae_on_this_machine(repo: str, path: str) -> Path | None:
    """The file that `sae_file` would return without downloading, None where there is none."""
    if repo == DEMO or _is_local(repo):
        folder = DEMO_FOLDER / "sae" if repo == DEMO else Path(repo).expanduser()
        return folder / path if (folder / path).exists() else None
    return cached(repo, path)


def revision(path: Path) -> str | None:
    """The hub's commit that a file or folder of the Hugging Face cache belongs to, None for any other place."""
    above = [path, *path.parents]
    return next((folder.name for folder in above if folder.parent.name == "snapshots"), None)


def go_offline() -> None:
    """Ask the network for nothing from now on, as HF_HUB_OFFLINE=1 does."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # for libraries that are not imported yet
    constants.HF_HUB_OFFLINE = True


def pull(model_id: str, revision: str | None = None) -> Path:
    """Download a checkpoint, or what changed of it, into the Hugging Face cache; `revision` becomes its pin."""
    absent = functools.partial(_absent, model_id)
    if constants.HF_HUB_OFFLINE:
        return _without_network(model_id, cached(model_id, "config.json"), absent()).parent
    check = functools.partial(_check_checkpoint, model_id)
    return download(Wanted(model_id, "config.json", _of_checkpoint, check, absent), revision)


def pull_sae(repo: str, path: str, revision: str | None = None) -> Path:
    """Download one file of an SAE release into the Hugging Face cache; `revision` becomes the release's pin."""
    if constants.HF_HUB_OFFLINE:
        here = cached(repo, path)
        return _without_network(repo, here, [] if here else [path])
    return download(Wanted(repo, path, lambda files: [f for f in files if f.path == path]), revision) / path


def _of_checkpoint(files: list[RepoFile]) -> list[RepoFile]:
    """Config, tokenizer and weights: the one file where there is one, else every shard."""
    weights = SINGLE if any(file.path == SINGLE for file in files) else "*.safetensors"
    wanted = [*BESIDE_WEIGHTS, weights]
    return [file for file in files if any(fnmatch.fnmatchcase(file.path, pattern) for pattern in wanted)]


def _check_checkpoint(model_id: str, folder: Path, listed: set[str]) -> None:
    """Before the weights are fetched: is the repository complete, and does its kind of model run here?"""
    from neuroscope_jax.models import registry  # brings JAX in

    weights = [SINGLE] if SINGLE in listed else weight_files(folder)
    missing = [name for name in ("config.json", "tokenizer.json", *weights) if name not in listed]
    if missing:
        raise failure(model_id, f"it holds no {', '.join(missing)}", "choose a checkpoint with safetensors weights")
    unknown = registry.unknown_family(registry.read_config(folder))
    if unknown:
        raise failure(model_id, f"its {unknown}", "choose a checkpoint of a supported family")


def _absent(model_id: str) -> list[str]:
    config = cached(model_id, "config.json")
    return missing_files(config.parent) if config else ["config.json"]


def _without_network(repo: str, here: Path | None, absent: list[str]) -> Path:
    """What the cache has where the hub may not be asked. Raises UserError where something is absent."""
    if here is None or absent:
        raise offline(repo, absent)
    logger.info("%s: here already; HF_HUB_OFFLINE is set, so the hub is not asked for anything newer", repo)
    return here


def _say_pin(repo: str) -> None:
    pin = hub_pins.pin_of(repo)
    if pin:
        logger.info("%s: pinned to %s (%s)", repo, pin.commit, pin.revision)


def _is_local(name: str) -> bool:
    return name.startswith(("/", "./", "../", "~")) or Path(name).exists()


def _existing(path: Path, name: str) -> Path:
    if path.exists():
        return path
    near = sorted(entry.name for entry in path.parent.iterdir())[:5] if path.parent.is_dir() else []
    seen = f"beside it there are {', '.join(near)}" if near else f"{path.parent} does not exist or is empty"
    raise UserError(f"Cannot find {name}.\nWhy: there is no {path}; {seen}.\nDo: check the path, or try --config demo.")
