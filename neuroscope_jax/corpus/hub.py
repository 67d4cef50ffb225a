"""Text datasets of the Hugging Face hub, through the `datasets` library, and why one could not be had.

HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN, HF_HOME and the proxy variables are the library's own, as it documents them.
"""

import contextlib
import errno
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.utils.tqdm import disable_progress_bars

from neuroscope_jax.config import CorpusSource
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.hub_errors import explain, failure

logger = logging.getLogger(__name__)

ALIASES = {"wikitext": "Salesforce/wikitext"}  # the hub's old name for it, which the library no longer resolves
WHOLE = 2_000_000_000  # bytes; a larger dataset, or one of unknown size, is streamed and not kept
PATIENCE = 5.0  # seconds for the hub's first answer
OTHERWISE = "or give `calibrate run` texts of your own with --corpus-path, or try the bundled pair: --config demo"
WHERE = ": {flag} of corpus build, or {field} in the [[corpus]] table"
REPEATED = "if it was fetched on this machine before, set HF_HUB_OFFLINE=1 to use that copy"


def dataset_id(name: str) -> str:
    """The hub's id of a dataset that may be known by a shorter name."""
    return ALIASES.get(name, name)


def describe(source: CorpusSource) -> str:
    """Dataset, configuration and split in words that fit a document's `source`."""
    return " ".join(filter(None, (dataset_id(source.dataset or ""), source.config, source.split)))


def fetch(source: CorpusSource, whole: bool = False) -> tuple[Any, str | None]:
    """The dataset and its commit, if known: a datasets.Dataset, or an IterableDataset where it is too large.

    `whole` asks for a Dataset whatever its size. Raises UserError in three lines: what, why, what to do.
    """
    repo = dataset_id(source.dataset or "")
    _quiet_where_no_terminal()
    commit = _commit(repo)
    with explained(repo):
        builder = _builder(source, commit)
        if whole or 0 < (builder.info.download_size or 0) <= WHOLE:
            builder.download_and_prepare()
            found = builder.as_dataset(split=source.split)
        else:
            logger.info("%s is large or of unknown size: its rows are streamed", repo)
            found = builder.as_streaming_dataset(split=source.split)
    _check_column(found, repo, source.text_field)
    return found, commit


@contextlib.contextmanager
def explained(repo: str) -> Iterator[None]:
    """What goes wrong inside becomes a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the library's own, the hub client's, Arrow's and the disk's
        raise _explanation(repo, error) from error


def refusal(repo: str, why: str, remedy: str) -> UserError:
    """The three lines for a dataset that is there, but not what was asked for."""
    return failure(f"datasets/{repo}", why, remedy, OTHERWISE)


def _quiet_where_no_terminal() -> None:
    import datasets

    if not sys.stderr.isatty():
        if constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
            disable_progress_bars()
        if datasets.config.HF_DATASETS_DISABLE_PROGRESS_BARS is None:
            datasets.disable_progress_bars()


def _commit(repo: str) -> str | None:
    """Ask for one file's metadata without retries, so that refusals and dead networks show at once."""
    import datasets

    try:
        url = huggingface_hub.hf_hub_url(repo, "README.md", repo_type="dataset")
        if datasets.config.HF_HUB_OFFLINE or constants.HF_HUB_OFFLINE:
            return None
        return huggingface_hub.get_hf_file_metadata(url, timeout=PATIENCE).commit_hash
    except EntryNotFoundError:
        return None  # a dataset without README
    except Exception as error:  # the hub client's, and those of whatever transport it uses
        refused = isinstance(error, HfHubHTTPError | HFValidationError)
        raise explain(f"datasets/{repo}", [], error, OTHERWISE if refused else f"{REPEATED}; {OTHERWISE}") from error


def _builder(source: CorpusSource, commit: str | None) -> Any:
    """What knows the dataset's configurations and splits; fetches nothing large."""
    import datasets

    repo = dataset_id(source.dataset or "")
    try:
        builder = datasets.load_dataset_builder(repo, source.config, revision=commit)
    except ValueError as error:  # it lists the configurations there are
        found = ", ".join(re.findall(r"'([^',]+)'", str(error).partition("vailable")[2])) or str(error)
        asked = f"no configuration {source.config}" if source.config else "more than one configuration"
        raise refusal(
            repo,
            f"it has {asked}; there are {found}",
            "give one of them: --config of corpus build, or config in the [[corpus]] table",
        ) from error
    splits = list(builder.info.splits or builder.config.data_files or ())
    # Slices and sums such as train[:10%] are the library's to judge.
    if splits and re.fullmatch(r"\w+", source.split) and source.split not in splits:
        why = f"it has no split {source.split}; there are {', '.join(map(str, splits))}"
        raise refusal(repo, why, "give one of them" + WHERE.format(flag="--split", field="split"))
    return builder


def _check_column(dataset: Any, repo: str, text_field: str) -> None:
    features = dataset.features
    if features is None:  # of some streamed formats nothing is known before the first row
        return
    kind = getattr(features.get(text_field), "dtype", None)
    if kind not in ("string", "large_string"):
        what = f"no column {text_field}" if text_field not in features else f"no text in column {text_field}"
        columns = ", ".join(f"{name} ({getattr(feature, 'dtype', 'nested')})" for name, feature in features.items())
        raise refusal(
            repo,
            f"it has {what}; there are {columns}",
            "give one of text: --text-field of corpus build, or text_field in the [[corpus]] table",
        )


def _explanation(repo: str, error: Exception) -> UserError:
    """By the first cause that is known."""
    import datasets

    chain = list(_causes(error))
    for cause in chain:
        full_disk = isinstance(cause, OSError) and cause.errno == errno.ENOSPC
        if isinstance(cause, HfHubHTTPError | HFValidationError) or full_disk:
            return explain(f"datasets/{repo}", ["README.md"], cause, OTHERWISE)
    if datasets.config.HF_HUB_OFFLINE or any(isinstance(cause, OfflineModeIsEnabled) for cause in chain):
        why = "HF_HUB_OFFLINE is set, and this dataset was not fetched on this machine before"
        return refusal(repo, why, "run once without HF_HUB_OFFLINE")
    no_files = datasets.exceptions.DataFilesNotFoundError, datasets.data_files.EmptyDatasetError
    if any(isinstance(cause, no_files) for cause in chain):
        return refusal(repo, "it holds no files that are read as data", "choose another dataset")
    told = f"{type(chain[-1]).__name__}: {str(chain[-1]).partition(chr(10))[0]}"
    return refusal(repo, f"its files could not be fetched or read ({told})", "try again, or choose another dataset")


def _causes(error: BaseException | None) -> Iterator[Exception]:
    """The error and what led to it, the nearest first."""
    while isinstance(error, Exception):
        yield error
        error = error.__cause__ or error.__context__
