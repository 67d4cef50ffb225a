"""A label file as it stands, whoever wrote it: what a person changed in the simple file goes before its details."""

import dataclasses
import datetime
from pathlib import Path

import msgspec

from neuroscope_jax import __version__, files
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.label_details import (
    LabelDetail,
    LabelDetails,
    details_path,
    read_details,
    save_details,
    save_labels,
)
from neuroscope_jax.features.labels import read_fitting_details, read_labels
from neuroscope_jax.identity import PairIdentity


def read(path: Path, config: NeuroscopeConfig, pair: PairIdentity) -> LabelDetails:
    """All that is known of the labels of a file, which may have no details beside it.

    Raises UserError for a file that is absent, damaged or of another pair.
    """
    texts = read_labels(path, pair.width)
    details = read_fitting_details(path, config, pair.width, pair) or new(config, pair)
    features = {index: _detail(text, details.features.get(index)) for index, text in texts.items()}
    unlabelled = {i: detail for i, detail in details.features.items() if i not in texts and not detail.shown}
    return dataclasses.replace(details, features=features | unlabelled)


def before(path: Path, config: NeuroscopeConfig, pair: PairIdentity) -> LabelDetails | None:
    """The same of a file that need not be there; the details know the labels of one that was lost."""
    return read(path, config, pair) if path.exists() else read_fitting_details(path, config, pair.width, pair)


def save_scores(path: Path, details: LabelDetails) -> list[Path]:
    """Write the details alone, unless labels are replaced: then these leave the file and nothing else in it changes.

    Returns the files that were written. Raises UserError where that cannot be.
    """
    texts = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    replaced = {index for index, detail in details.features.items() if detail.replaced}
    left = {index: text for index, text in texts.items() if int(index) not in replaced}
    if len(left) == len(texts):
        save_details(path, details)
        return [details_path(path)]
    save_labels(path, details, msgspec.json.encode(left))
    return [path, details_path(path)]


def check(path: Path, config: NeuroscopeConfig, dry_run: bool = False) -> None:
    """Tell before anything is downloaded that a file is absent, cannot be written beside, or is of another pair."""
    if path.is_dir():
        raise UserError(f"--labels {path}: a folder; expected a file, JSON from feature index to label")
    if not path.is_file():
        raise UserError(f"--labels {path}: no such file; expected JSON from feature index to label")
    check_place(path, dry_run)
    if details_path(path).exists():
        details = read_details(details_path(path))
        made = details.neuronpedia_model_id, details.neuronpedia_sae_id
        named = config.neuronpedia_model_id, config.neuronpedia_sae_id
        if made != named:
            raise UserError(
                f"--labels {path}: labels of {'/'.join(made)}, but the pair in use is {'/'.join(named)}; "
                "name theirs with --config, or with --model and --sae"
            )


def new(config: NeuroscopeConfig, pair: PairIdentity) -> LabelDetails:
    """No labels yet."""
    return LabelDetails(
        source="autointerp",
        pair=pair,
        neuronpedia_model_id=config.neuronpedia_model_id,
        neuronpedia_sae_id=config.neuronpedia_sae_id,
        width=pair.width,
        made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        version=__version__,
        labeler=None,
        prompt_version=None,
        run=None,
        control=None,
        features={},
    )


def _detail(text: str, known: LabelDetail | None) -> LabelDetail:
    """What is known of a label; of one that a person changed only that."""
    if known is None or known.label != text:
        return LabelDetail(text, "labelled", by_hand=True)
    return dataclasses.replace(known, replaced=False)


def check_place(path: Path, dry_run: bool = False) -> None:
    """Raises UserError where label files cannot be written at `path`; a dry run, which leaves nothing, does not try."""
    if path.suffix != ".json":
        raise UserError(f"{path}: expected a name that ends in .json; the labels' details are written beside it")
    if dry_run:
        return
    try:
        for place in (path, details_path(path)):
            files.check_place(place)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; name another place") from error
