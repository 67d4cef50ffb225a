"""What is known of each label beyond its words, and the file beside the labels that keeps it.

`x.json` maps feature indices to the labels to be shown; `x_details.json` says of every feature where its label comes
from, how sure its maker was and how well it scored, and of a feature without a label why it has none.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json, set_aside
from neuroscope_jax.identity import PairIdentity

LOW = 0.60  # balanced accuracy below which a label is flagged
FEWEST_CONTROLS = 5  # of which the mean says something

Rate = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class WrongSequence:
    """A sequence about which the judge was wrong."""

    text: str
    was_active: bool


@dataclass(frozen=True)
class Score:
    """Detection score of one label: can a reader of the label tell sequences where the feature fires from others?"""

    status: Literal["scored", "insufficient"]
    balanced_accuracy: Rate | None  # (tpr + tnr) / 2; the figures are None where there were too few sequences
    tpr: Rate | None  # of the active sequences, the share recognised
    tnr: Rate | None  # of the silent ones, the share recognised
    standard_error: Annotated[float, msgspec.Meta(ge=0)] | None  # of balanced_accuracy
    n_active: Count  # sequences answered
    n_silent: Count
    n_hard: Count  # of n_silent, those that hold the feature's usual token
    n_failed: Count  # asked, not answered
    judge: str  # model id
    wrong: list[WrongSequence]

    @property
    def low_confidence(self) -> bool:
        """True where the label scored below LOW."""
        return self.balanced_accuracy is not None and self.balanced_accuracy < LOW


@dataclass(frozen=True)
class LabelDetail:
    """One feature's label and its history."""

    label: str | None
    # dead: never fired; thin: too few examples to tell anything; failed: asked for, no usable answer
    status: Literal["labelled", "dead", "thin", "failed"]
    reason: str | None = None  # why there is no label, in words
    confidence: Literal["high", "medium", "low"] | None = None  # the labeler's own
    pattern: str | None = None  # the labeller's description in a sentence
    model: str | None = None  # that wrote the label
    date: str | None = None
    prompt_sha256: str | None = None
    type_name: str | None = None  # Neuronpedia's name for the method
    alternatives: Count = 0  # other labels that were passed over
    score: Score | None = None
    replaced: bool = False  # scored too low to be shown
    by_hand: bool = False  # a person wrote it into the labels file; no run replaces it

    @property
    def shown(self) -> bool:
        """True where the label belongs in the simple file."""
        return bool(self.label) and not self.replaced


@dataclass(frozen=True)
class Control:
    """What labels score on features they were not made for: near 0.5 where scores mean anything."""

    balanced_accuracy: Rate | None  # mean
    n: Count  # features scored so
    standard_error: Annotated[float, msgspec.Meta(ge=0)] | None = None  # of the mean, by the spread of the features

    def __str__(self) -> str:
        """In words, for people."""
        if self.balanced_accuracy is None:
            return "no labels could be tried on features they were not written for"
        tried = "1 label tried on a feature it was" if self.n == 1 else f"{self.n:,} labels tried on features they were"
        error = "" if self.standard_error is None else f" ± {self.standard_error:.2f}"
        sure = ", too few to tell" if self.n < FEWEST_CONTROLS else error
        return f"{tried} not written for scored {self.balanced_accuracy:.2f}{sure} (0.5 expected by chance)"


@dataclass(frozen=True)
class Download:
    """Where fetched labels come from."""

    address: str  # of the folder
    batches: dict[str, str]  # file name → ETag
    records: Count  # labels in them, of all features together


@dataclass(frozen=True)
class LabelDetails:
    """All details of one SAE's labels."""

    source: Literal["autointerp", "neuronpedia"]
    pair: PairIdentity | None  # None for fetched labels, which know ids only
    neuronpedia_model_id: str
    neuronpedia_sae_id: str
    width: Annotated[int, msgspec.Meta(ge=1)]
    made: str  # ISO 8601 date and time
    version: str  # of this program
    labeler: str | None  # model id
    prompt_version: str | None
    run: str | None  # the corpus pass whose examples were labelled
    control: Control | None
    features: dict[int, LabelDetail]
    download: Download | None = None


def details_path(labels: Path) -> Path:
    """The details file of a labels file: x.json to x_details.json."""
    return labels.with_name(f"{labels.stem}_details.json")


def read_details(path: Path) -> LabelDetails:
    """Read a details file. Raises UserError naming the file and the field that cannot be."""
    details = read_json(path, LabelDetails)
    outside = [index for index in details.features if not 0 <= index < details.width]
    if outside:
        raise UserError(f"{path}: features has {outside[0]}, but width is {details.width}: 0 to {details.width - 1}")
    if details.pair is None and details.source == "autointerp":
        raise UserError(f"{path}: pair is null; expected the model and SAE the labels were made with")
    if details.pair is not None and details.pair.width != details.width:
        raise UserError(f"{path}: width is {details.width}, but pair.width is {details.pair.width}")
    return details


def save_labels(labels_path: Path, details: LabelDetails, texts: bytes | None = None) -> None:
    """Write both files, each whole or not at all, the simple one last. Raises UserError where that cannot be.

    `texts` is the JSON of the simple file where it is not to be made from the details.
    """
    shown = {str(index): detail.label for index, detail in sorted(details.features.items()) if detail.shown}
    with set_aside(details_path(labels_path), labels_path) as (details_aside, labels_aside):
        details_aside.write_bytes(msgspec.json.encode(_without_defaults(details)))
        labels_aside.write_bytes(msgspec.json.format(texts or msgspec.json.encode(shown)) + b"\n")


def save_details(labels_path: Path, details: LabelDetails) -> None:
    """Write only the details of a labels file, whole or not at all. Raises UserError where that cannot be."""
    with set_aside(details_path(labels_path)) as (aside,):
        aside.write_bytes(msgspec.json.encode(_without_defaults(details)))


def _without_defaults(details: LabelDetails) -> dict[str, Any]:
    """As plain values in the features' order, each with only what is known of it."""
    details = replace(details, features=dict(sorted(details.features.items())))
    plain: dict[str, Any] = msgspec.to_builtins(details, str_keys=True)
    for index, detail in plain["features"].items():
        plain["features"][index] = {k: v for k, v in detail.items() if k == "label" or v not in (None, 0)}
    return plain
