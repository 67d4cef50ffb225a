"""The SAEs of a Gemma Scope release: layers, widths and L0s, on the hub and in the cache."""

import dataclasses
import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import HfApi, constants
from huggingface_hub.hf_api import RepoFile

from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub_pins
from neuroscope_jax.models.checkpoints import cached_repos
from neuroscope_jax.models.hub import DEMO, DEMO_FOLDER
from neuroscope_jax.models.hub_cache import cached
from neuroscope_jax.models.hub_errors import explain, failure, offline
from neuroscope_jax.models.intact import problem
from neuroscope_jax.sae.formats import READERS, width_of_file

PLACE = re.compile(r"(?:^|/)layer_(\d+)/width_(\w+)/average_l0_(\d+)/")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where in its release an SAE stands, as its path says."""

    layer: int | None  # block whose output it reads, 0-indexed
    width: str | None  # number of features as the release writes it, e.g. 16k
    average_l0: int | None  # features active at once, measured by its makers


@dataclasses.dataclass(frozen=True)
class PublishedSae:
    """An SAE that a release on the hub holds."""

    path: str  # what --sae-path takes
    place: Place
    size_bytes: int
    here: bool  # in the cache


@dataclasses.dataclass(frozen=True)
class LocalSae:
    """An SAE on this machine."""

    repo: str  # what --sae takes
    path: str
    place: Place
    revision: str | None  # the hub's commit
    in_use: bool  # the revision that --sae means now
    features: int | None  # None where the file cannot be read
    size_bytes: int
    problem: str | None
    file: str


def place_of(path: str) -> Place:
    """layer_20/width_16k/average_l0_71/params.npz is layer 20, width 16k, L0 71; None for what a path does not say."""
    found = PLACE.search(path)
    return Place(int(found[1]), found[2], int(found[3])) if found else Place(None, None, None)


def published(repo: str, revision: str | None = None) -> tuple[str, list[PublishedSae]]:
    """The commit and the SAEs of a release, by layer, width and L0. Raises UserError in three lines."""
    if constants.HF_HUB_OFFLINE:
        raise offline(repo, ["the list of a release's files"])
    pin = hub_pins.pin_of(repo)
    asked = revision or (pin.commit if pin else hub_pins.FREE)
    try:
        commit = HfApi().model_info(repo, revision=asked).sha or asked
        entries = list(HfApi().list_repo_tree(repo, recursive=True, revision=commit))
    except Exception as error:  # the hub client's, and those of whatever transport it uses
        raise explain(repo, [], error, revision=asked) from error
    files = [entry for entry in entries if isinstance(entry, RepoFile) and Path(entry.path).suffix in READERS]
    if not files:
        seen = ", ".join(sorted({Path(entry.path).suffix or entry.path for entry in entries})[:5]) or "nothing"
        why = f"it holds no SAE in a format that is read here ({', '.join(READERS)}); found {seen}"
        raise failure(repo, why, "choose a Gemma Scope release, such as google/gemma-scope-2b-pt-res")
    found = [
        PublishedSae(file.path, place_of(file.path), file.size, cached(repo, file.path, commit) is not None)
        for file in files
    ]
    return commit, sorted(found, key=lambda sae: (_order(sae.place), sae.path))


def on_this_machine() -> list[LocalSae]:
    """The bundled SAE and those in the Hugging Face cache, by release, layer, width and L0."""
    top = DEMO_FOLDER / "sae"
    found = [_local(DEMO, None, top, file, True) for file in sorted(top.rglob("*")) if file.suffix in READERS]
    for repo in cached_repos():
        several = [
            _local(repo.repo_id, revision.commit_hash, revision.snapshot_path, file.file_path, None)
            for revision in repo.revisions
            for file in revision.files
            if file.file_path.suffix in READERS
        ]
        found += sorted(several, key=lambda sae: (_order(sae.place), sae.path, sae.revision))
    return found


def by_variant(saes: Iterable[PublishedSae]) -> list[tuple[Place, list[PublishedSae]]]:
    """Those of one layer and width together."""
    grouped = itertools.groupby(saes, key=lambda sae: (sae.place.layer, sae.place.width))
    lists = (list(group) for _, group in grouped)
    return [(group[0].place, group) for group in lists]


def _local(repo: str, commit: str | None, top: Path, file: Path, in_use: bool | None) -> LocalSae:
    path = file.relative_to(top).as_posix()
    wrong, features = problem(file), None
    try:
        features = None if wrong else width_of_file(file)
    except UserError as error:
        wrong = str(error)
    used = cached(repo, path) == file if in_use is None else in_use
    return LocalSae(repo, path, place_of(path), commit, used, features, file.stat().st_size, wrong, str(file))


def _order(place: Place) -> tuple[bool, int, int, str, int]:
    """Layers by number, widths by size: 16k before 65k before 1m; what has no place comes last."""
    width = re.fullmatch(r"(\d+)([km]?)", place.width or "") or re.fullmatch("()()", "")
    assert width is not None
    size = int(width[1] or 0) * {"": 1, "k": 1000, "m": 1000_000}[width[2]]
    return place.layer is None, place.layer or 0, size, place.width or "", place.average_l0 or 0
