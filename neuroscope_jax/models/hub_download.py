"""Downloads into the Hugging Face cache: what is to come and whether it fits is said first, what came is checked."""

import dataclasses
import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import huggingface_hub
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import FileMetadataError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.sha import git_hash
from huggingface_hub.utils.tqdm import disable_progress_bars
from tqdm import tqdm

from neuroscope_jax.errors import UserError
from neuroscope_jax.models import hub_pins
from neuroscope_jax.models.hub_cache import cached
from neuroscope_jax.models.hub_errors import explain, failure
from neuroscope_jax.models.hub_transfer import fetch_blob, fetched
from neuroscope_jax.models.intact import problem

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds for the hub's first answer
SHOWN = 8  # files named of those to come, and digits of a commit

Choose = Callable[[list[RepoFile]], list[RepoFile]]
Check = Callable[[Path, set[str]], None]


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What to have of a repository."""

    repo: str
    first: str  # a file that must be there, asked for first
    choose: Choose  # of the files in its folder those to have
    # Called with the folder, when all but the Git LFS files are in it, and the paths of all; raises where those are
    # not worth fetching.
    check: Check = lambda folder, listed: None
    absent: Callable[[], list[str]] = list  # what the cache lacks of it


@dataclasses.dataclass(frozen=True)
class Plan:
    """What will be fetched."""

    commit: str
    files: list[RepoFile]  # all that is wanted, the small ones first
    to_fetch: list[RepoFile]  # of these, what is not here or not right


def download(wanted: Wanted, revision: str | None = None) -> Path:
    """Have the files of one commit in the cache, and return their folder (of the repository, not of `first`).

    `revision` (a branch, tag or commit) becomes the repository's pin; None means its pin, else its main branch.
    Raises UserError in three lines: what, why, what to do.
    """
    pin = hub_pins.pin_of(wanted.repo)
    asked = revision or (pin.commit if pin else hub_pins.FREE)
    _quiet_where_no_terminal()
    try:
        plan = _plan(wanted, asked)
        _announce(wanted.repo, plan)
        _check_space(wanted.repo, plan)
        folder = _fetch(wanted, plan)
        # Only now does the branch's name lead to this commit: until all is there, the older copy stays in use.
        huggingface_hub.hf_hub_download(wanted.repo, wanted.first, revision=asked)
    except UserError:
        raise
    except Exception as error:  # huggingface_hub raises a dozen kinds, its HTTP library and the disk some more
        raise explain(wanted.repo, wanted.absent() or [wanted.first], error, revision=asked) from error
    if revision:
        hub_pins.record(wanted.repo, revision, plan.commit)
    return folder


def size_text(size: float) -> str:
    """12345678 as 12.3 MB."""
    text = tqdm.format_sizeof(size, "B", 1000)
    number = text.rstrip("kMGTPEZYB")
    return f"{number} {text[len(number) :]}"


def _plan(wanted: Wanted, asked: str) -> Plan:
    commit = _commit(wanted.repo, wanted.first, asked)
    folder = str(PurePosixPath(wanted.first).parent)
    entries = HfApi().list_repo_tree(wanted.repo, None if folder == "." else folder, revision=commit)
    files = wanted.choose([entry for entry in entries if isinstance(entry, RepoFile)])
    files.sort(key=lambda file: (file.lfs is not None, file.path))
    return Plan(commit, files, [file for file in files if not _is_right(wanted.repo, file, commit)])


def _commit(repo: str, file: str, revision: str) -> str:
    """The commit of a revision, asked for by one file's metadata, so that refusals and dead networks show at once."""
    url = huggingface_hub.hf_hub_url(repo, file, revision=revision)
    commit = huggingface_hub.get_hf_file_metadata(url, timeout=_patience()).commit_hash
    if commit is None:
        raise FileMetadataError("no commit in the answer")
    return commit


def _is_right(repo: str, file: RepoFile, commit: str) -> bool:
    here = cached(repo, file.path, commit)
    if here is None:
        return False
    wrong = problem(here, file.size)
    if wrong and not _as_published(here, file):
        logger.warning("%s in the cache is %s: it will be fetched anew", file.path, wrong)
        return False
    return True


def _as_published(path: Path, file: RepoFile) -> bool:
    """True for a small file whose content is the hub's own, whatever it looks like."""
    return file.lfs is None and git_hash(path.read_bytes()) == file.blob_id


def _announce(repo: str, plan: Plan) -> None:
    commit, total = plan.commit[:SHOWN], size_text(sum(file.size for file in plan.files))
    if not plan.to_fetch:
        logger.info("%s at %s: all %d files (%s) are here already", repo, commit, len(plan.files), total)
        return
    coming = size_text(_bytes_to_come(repo, plan))
    logger.info("%s at %s: %d files, %s; %s of it to fetch:", repo, commit, len(plan.files), total, coming)
    largest = sorted(plan.to_fetch, key=lambda file: -file.size)
    for file in largest[:SHOWN]:
        begun = fetched(repo, file)
        logger.info("  %s, %s%s", file.path, size_text(file.size), f", {size_text(begun)} here" if begun else "")
    if len(largest) > SHOWN:
        logger.info("  and %d smaller ones", len(largest) - SHOWN)


def _check_space(repo: str, plan: Plan) -> None:
    needed = _bytes_to_come(repo, plan)
    folder = Path(constants.HF_HUB_CACHE)
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    if plan.to_fetch and needed > free:
        names = ", ".join(file.path for file in plan.to_fetch[-3:])
        short = f"{size_text(free)} are free in {folder}, {size_text(needed - free)} too few"
        why = f"{size_text(needed)} are to come ({names}), but only {short}"
        raise failure(repo, why, "make room, or set HF_HOME to a folder on another disk")


def _bytes_to_come(repo: str, plan: Plan) -> int:
    return sum(file.size - fetched(repo, file) for file in plan.to_fetch)


def _fetch(wanted: Wanted, plan: Plan) -> Path:
    """The small files, a look at them, then the large ones; each is checked as it comes. Returns their folder."""
    small = [_fetch_one(wanted.repo, plan, file) for file in plan.files if file.lfs is None]
    if small:
        wanted.check(small[0], {file.path for file in plan.files})
    large = [_fetch_one(wanted.repo, plan, file) for file in plan.files if file.lfs is not None]
    return (small + large)[0]


def _fetch_one(repo: str, plan: Plan, file: RepoFile) -> Path:
    """Returns the folder that stands for the repository."""
    fetch = file in plan.to_fetch
    if fetch and file.lfs is not None:
        fetch_blob(repo, file, plan.commit)
    anew = fetch and file.lfs is None and cached(repo, file.path, plan.commit) is not None
    path = Path(huggingface_hub.hf_hub_download(repo, file.path, revision=plan.commit, force_download=anew))
    wrong = problem(path, file.size)
    if wrong:
        raise failure(
            repo,
            f"{file.path} is {wrong}, and the hub has it so at {plan.commit[:SHOWN]}",
            "choose another --revision or repository",
        )
    return path.parents[len(PurePosixPath(file.path).parts) - 1]


def _quiet_where_no_terminal() -> None:
    if not sys.stderr.isatty() and constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
        disable_progress_bars()


def _patience() -> float:
    """Seconds; HF_HUB_ETAG_TIMEOUT goes first where it is set."""
    chosen = constants.HF_HUB_ETAG_TIMEOUT
    return PATIENCE if chosen == constants.DEFAULT_ETAG_TIMEOUT else float(chosen)
