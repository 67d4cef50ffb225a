"""Labels: feature index → words. Auto-interp labels first, then Neuronpedia's, then bundled ones, then the number.

The order holds for each feature on its own: Neuronpedia's label stands where auto-interp has none, unless auto-interp
has taken its own back because it scored too low. Then the number stands.
"""

import dataclasses
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from neuroscope_jax.config import NeuroscopeConfig, cache_folder
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.label_details import LabelDetail, LabelDetails, details_path, read_details
from neuroscope_jax.identity import PairIdentity
from neuroscope_jax.models.hub import DEMO, DEMO_FOLDER

logger = logging.getLogger(__name__)

Source = Literal["autointerp", "neuronpedia", "bundled", "numeric", "by hand"]  # the last: changed in a file made here
MAKE = {
    "autointerp": "make labels of this pair with `neuroscope_jax labels generate`",
    "neuronpedia": "fetch this pair's with `neuroscope_jax labels pull --refresh`",
}


@dataclasses.dataclass(frozen=True)
class Labels:
    """The labels of one SAE; a feature without one is called by its number."""

    sae_id: str
    width: int
    source: Source  # the best one that any label comes from
    texts: dict[int, str]
    sources: dict[int, Source] = dataclasses.field(default_factory=dict)  # of each text, where not all have `source`
    details: dict[int, LabelDetail] = dataclasses.field(default_factory=dict)

    def text(self, index: int) -> str:
        """The label of a feature, or feature_4521."""
        return self.texts.get(index) or f"feature_{index}"

    def all(self) -> dict[str, str]:
        """Every feature's label under its index as a string."""
        return {str(index): self.text(index) for index in range(self.width)}

    def source_of(self, index: int) -> Source:
        """Where a feature's label comes from; "numeric" where it has none."""
        return self.sources.get(index, self.source) if index in self.texts else "numeric"

    def detail_of(self, index: int) -> LabelDetail | None:
        """What is known of a feature's label, or of why it has none; None where nothing is."""
        return self.details.get(index)


@dataclasses.dataclass(frozen=True)
class LabelFile:
    """One file of labels, and the details beside it where there are any."""

    path: Path
    source: Source
    texts: dict[int, str]
    details: LabelDetails | None


def load_labels(config: NeuroscopeConfig, width: int, pair: PairIdentity | None = None) -> Labels:
    """The best labels there are for the config's SAE, `pair` being the model and SAE in use.

    A file that cannot be theirs (another model's, another SAE's, one of another width) is left aside, and that is said.
    """
    return layered(config, width, label_files(config, width, pair))


def label_files(config: NeuroscopeConfig, width: int, pair: PairIdentity | None = None) -> list[LabelFile]:
    """The label files on this machine that `load_labels` goes by, best first."""
    found = []
    for source, path in _files(config):
        try:
            details = read_fitting_details(path, config, width, pair)
            found.append(LabelFile(path, source, read_labels(path, width), details))
        except UserError as error:
            # Nobody asked for this file: a base model and its tuned versions share its name.
            logger.warning("labels: left aside: %s", error)
    return found


def layered(config: NeuroscopeConfig, width: int, files: list[LabelFile]) -> Labels:
    """Each feature's label from the first of these files that settles it."""
    labels = Labels(config.sae_id, width, "numeric", {})
    settled: set[int] = set()
    for file in files:
        before = len(labels.texts)
        _add(labels, settled, file.source, file.texts, file.details.features if file.details else None)
        logger.info("labels: %d of %d features from %s (%s)", len(labels.texts) - before, width, file.path, file.source)
    if not labels.texts:
        logger.info("labels: none found for %s; features are shown by number", config.sae_id)
    return dataclasses.replace(labels, source=next(iter(labels.sources.values()), "numeric"))


def read_labels(file: Path, width: int) -> dict[int, str]:
    """Read a JSON object from feature index to label. Raises UserError where it is no such thing or does not fit."""
    try:
        found = _by_number(msgspec.json.decode(file.read_bytes(), type=dict[str, str]))
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # what the decoder raises is one too
        raise UserError(
            f"{file}: not a JSON object from feature index to label: {error}; correct it, or move it elsewhere"
        ) from error
    outside = [index for index in found if not 0 <= index < width]
    if outside:
        raise UserError(f"{file}: labels feature {outside[0]}, but this SAE has {width} features, 0 to {width - 1}")
    return {index: text.strip() for index, text in found.items() if text.strip()}


def read_fitting_details(
    labels: Path, config: NeuroscopeConfig, width: int, pair: PairIdentity | None = None
) -> LabelDetails | None:
    """The details beside a labels file, None where there are none.

    Raises UserError where they name another model, SAE, width or Neuronpedia id than those in use.
    """
    file = details_path(labels)
    if not file.is_file():
        return None
    details = read_details(file)
    misfits = _misfits(details, config, width, pair)
    if misfits:
        raise UserError(
            f"{file}: labels of {' and '.join(misfits)}; move it and {labels.name} elsewhere, or {MAKE[details.source]}"
        )
    return details


def is_by_hand(text: str, detail: LabelDetail | None) -> bool:
    """Whether a person wrote this label of a file that has details: `detail` is theirs, None where they have none."""
    return detail is None or detail.by_hand or detail.label != text


def labels_path(config: NeuroscopeConfig, source: Literal["autointerp", "neuronpedia"]) -> Path:
    """Where the pair's labels of a source are kept."""
    pair = f"{config.neuronpedia_model_id}_{config.neuronpedia_sae_id}"
    return cache_folder() / "labels" / f"{pair}_{source}.json"


def _by_number(found: dict[str, str]) -> dict[int, str]:
    """Raises ValueError for a key that is none of a feature."""
    wrong = next((key for key in found if not re.fullmatch(r"-?\d{1,9}", key, re.ASCII)), None)
    if wrong is not None:
        raise ValueError(f"key {wrong!r} is not a feature number")
    return {int(key): text for key, text in found.items()}


def _files(config: NeuroscopeConfig) -> Iterator[tuple[Source, Path]]:
    """The label files there are, best first."""
    sources: list[tuple[Source, Path]] = [
        ("autointerp", labels_path(config, "autointerp")),
        ("neuronpedia", labels_path(config, "neuronpedia")),
    ]
    if config.sae_repo == DEMO and config.sae_local_path is None:
        sources.append(("bundled", DEMO_FOLDER / "labels.json"))
    return ((source, file) for source, file in sources if file.is_file())


def _add(
    labels: Labels, settled: set[int], source: Source, texts: dict[int, str], details: dict[int, LabelDetail] | None
) -> None:
    """Put one source's labels under those that are there; `settled` are the features that want no further label."""
    for index in (texts.keys() | (details or {}).keys()) - settled:
        text, detail = texts.get(index), (details or {}).get(index)
        if text:
            changed = details is not None and is_by_hand(text, detail)
            labels.texts[index], labels.sources[index] = text, "by hand" if changed else source
            labels.details.pop(index, None)  # a better source's word on why it has no label
        # Where a label was changed or taken out by hand, its detail is about another.
        if detail and (text == detail.label or (text is None and not detail.shown)):
            labels.details.setdefault(index, detail)
        if text or (detail and detail.replaced):
            settled.add(index)


def _misfits(details: LabelDetails, config: NeuroscopeConfig, width: int, pair: PairIdentity | None) -> list[str]:
    made = details.neuronpedia_model_id, details.neuronpedia_sae_id
    used = config.neuronpedia_model_id, config.neuronpedia_sae_id
    found = [] if made == used else [f"another Neuronpedia id ({'/'.join(made)}; in use is {'/'.join(used)})"]
    if details.pair and pair:
        return found + details.pair.misfits(pair)
    return found if details.width == width else [*found, f"another width ({details.width}; in use is {width})"]
