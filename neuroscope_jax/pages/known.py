"""What is known of a pair's features before any page is made: its labels, and its corpus pass where there was one."""

import dataclasses
from pathlib import Path

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.features.calibration import FeatureStats, Provenance, read_stats, stats_path
from neuroscope_jax.features.label_details import LabelDetail, LabelDetails
from neuroscope_jax.features.labels import (
    LabelFile,
    Labels,
    label_files,
    layered,
    read_fitting_details,
    read_labels,
)
from neuroscope_jax.features.width import width_of

NAMES = {"neuronpedia": "Neuronpedia"}


@dataclasses.dataclass(frozen=True)
class Measured:
    """A corpus pass that was finished."""

    stats: FeatureStats
    provenance: Provenance
    files: Files


@dataclasses.dataclass(frozen=True)
class Known:
    """All that there is about the features of a pair."""

    config: NeuroscopeConfig
    labels: Labels
    details: tuple[LabelDetails, ...]  # of the files the labels come from, best first
    file: Path | None  # the one label file that was asked for
    measured: Measured | None

    @property
    def width(self) -> int:
        """Number of features."""
        return self.labels.width

    def label(self, feature: int) -> str | None:
        """Its label; None where it goes by its number."""
        return self.labels.texts.get(feature)

    def source(self, feature: int) -> str | None:
        """Where its label comes from, in a word or two; None where it has none."""
        source, detail = self.labels.source_of(feature), self.detail(feature)
        if source == "numeric":
            return None
        if self.file and all(details.labeler is None and details.source == "autointerp" for details in self.details):
            return self.file.name  # which nothing was ever made for here
        if source == "autointerp":
            return "Claude" if detail and detail.model else "made here"
        return NAMES.get(source, source)

    def source_in_full(self, feature: int) -> str | None:
        """The same with the model that wrote it."""
        source, detail = self.source(feature), self.detail(feature)
        if source is None or detail is None or detail.model is None:
            return source
        return f"{source} ({detail.model})" + (", made here" if source == "Claude" else "")

    def detail(self, feature: int) -> LabelDetail | None:
        """What is known of its label, or of why it has none."""
        return self.labels.detail_of(feature)


def read_pass(config: NeuroscopeConfig) -> Measured | None:
    """The pass of the config's pair, None where there was none. Raises UserError for files that are damaged."""
    path = stats_path(config)
    if not path.exists() and config.calibration_path is None:
        return None
    return Measured(*read_stats(path), Files(path))


def known(config: NeuroscopeConfig, measured: Measured | None, file: Path | None = None) -> Known:
    """What is on this machine about the config's pair; with `file` its labels instead of those of the cache folder.

    Files of another pair are left aside, and that is said. Raises UserError where `file` is one of them, and where not
    even the number of features can be told.
    """
    pair = measured.provenance.pair if measured else None
    width = pair.width if pair else width_of(config)
    if file is None:
        files = label_files(config, width, pair)
    else:
        details = read_fitting_details(file, config, width, pair)
        source = details.source if details else "autointerp"
        files = [LabelFile(file, source, read_labels(file, width), details)]
    labels = layered(config, width, files)
    return Known(config, labels, tuple(f.details for f in files if f.details), file, measured)
