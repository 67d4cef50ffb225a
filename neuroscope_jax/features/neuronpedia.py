"""Neuronpedia: the labels of its bulk export, and the page it has of a feature.

The export is a public bucket of gzip'd JSON lines, v1/MODEL/SAE/explanations/batch-N.jsonl.gz. A batch is no range of
features, so all are read. Most of a record is an embedding of its text, which is skipped while parsing.
"""

import datetime
import functools
import os
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tqdm import tqdm

from neuroscope_jax import __version__, pairs
from neuroscope_jax.config import NeuroscopeConfig, load_preset, preset_names
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.bucket import Bucket, Item
from neuroscope_jax.features.label_details import Download, LabelDetail, LabelDetails
from neuroscope_jax.models.hub import DEMO

SITE = "https://www.neuronpedia.org"
DATASETS = "https://neuronpedia-datasets.s3.us-east-1.amazonaws.com"
DATASETS_VARIABLE = "NEURONPEDIA_DATASETS"  # a mirror of the bucket

BATCH = re.compile(r"batch-(\d+)\.jsonl\.gz")
LONGEST = 40  # words; what is longer is not a label but the model's reasoning about one, of which the export has some

# Neuronpedia's methods, best first: from the texts that activate the feature and the tokens it promotes; from the
# strongest tokens and the same; from tokens and activations alone.
METHODS = ("np_acts-logits-general", "np_max-act-logits", "oai_token-act-pair")


class Record(msgspec.Struct, rename="camel"):
    """What is read of a line of the export."""

    model_id: str
    layer: str  # the SAE's id, not a number
    index: str | int  # written as a string
    description: str | None = None
    type_name: str | None = None
    explanation_model_name: str | None = None  # None where a person wrote it
    created_at: Any = None  # ISO 8601; older records have none


@dataclass
class Found:
    """What the batches hold so far: the label taken of each feature, and what was passed over."""

    best: dict[int, Record] = field(default_factory=dict)
    candidates: dict[int, int] = field(default_factory=dict)  # labels seen of each feature
    records: int = 0

    def add(self, index: int, record: Record) -> None:
        """One more record of a feature; without a text of a label's length it only counts."""
        self.records += 1
        if not 0 < len((record.description or "").split()) <= LONGEST:
            return
        self.candidates[index] = self.candidates.get(index, 0) + 1
        self.best[index] = max(self.best.get(index, record), record, key=rank)


def fetch(config: NeuroscopeConfig, width: int) -> LabelDetails:
    """All labels that the export has of the config's SAE of `width` features, one a feature.

    Raises UserError where the bucket cannot be read, has none, or holds those of another SAE.
    """
    found = Found()
    with Bucket(os.environ.get(DATASETS_VARIABLE) or DATASETS) as bucket:
        prefix = f"v1/{config.neuronpedia_model_id}/{config.neuronpedia_sae_id}/explanations/"
        batches = _batches(bucket, prefix, config)
        for batch in tqdm(batches, "labels", unit=" files", disable=None, dynamic_ncols=True, leave=False):
            _read(bucket, batch, config, width, found)
        download = Download(f"{bucket.address}/{prefix}", {b.name: b.etag for b in batches}, found.records)
    if not found.best:
        raise UserError(f"{download.address}: {found.records:,} records, none with a label; nothing was written")
    return LabelDetails(
        source="neuronpedia",
        pair=None,
        neuronpedia_model_id=config.neuronpedia_model_id,
        neuronpedia_sae_id=config.neuronpedia_sae_id,
        width=width,
        made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        version=__version__,
        labeler=None,
        prompt_version=None,
        run=None,
        control=None,
        features={index: _detail(record, found.candidates[index]) for index, record in found.best.items()},
        download=download,
    )


def rank(record: Record) -> tuple[int, str, list[int], str, str]:
    """Where a feature has several labels, the one that ranks highest is taken. In this order:

    the method, as in METHODS, then other methods, then what a person typed in; the newest, undated ones being the
    oldest; the greater version in the name of the model that wrote it; and at last the alphabet, so that the choice
    does not hang on the order of the batches. The export carries no scores to go by.
    """
    method, model = record.type_name or "", record.explanation_model_name or ""
    place = len(METHODS) - METHODS.index(method) if method in METHODS else 0 if method or model else -1
    date = record.created_at if isinstance(record.created_at, str) else ""
    return place, date, [int(number) for number in re.findall(r"\d{1,9}", model)], model, record.description or ""


def page(config: NeuroscopeConfig, index: int) -> str | None:
    """Address of Neuronpedia's page of a feature, None for a pair that it is not known to have."""
    ids = config.neuronpedia_model_id, config.neuronpedia_sae_id
    if config.sae_repo == DEMO or ids not in _published():
        return None
    return f"{SITE}/{'/'.join(ids)}/{index}"


@functools.cache
def _published() -> frozenset[tuple[str, str]]:
    """Model and SAE ids of the presets and of the releases known by layer."""
    presets = [config for config in map(load_preset, preset_names()) if config.sae_repo != DEMO]
    ids = {(config.neuronpedia_model_id, config.neuronpedia_sae_id) for config in presets}
    for (_, width), (model, layers) in pairs.PUBLISHED.items():
        ids |= {(model, f"{layer}-gemmascope-res-{width}") for layer in range(len(layers))}
    return frozenset(ids)


def _batches(bucket: Bucket, prefix: str, config: NeuroscopeConfig) -> list[Item]:
    """The batches in the order of their numbers. Raises UserError where there are none."""
    names = {item: BATCH.fullmatch(item.key.removeprefix(prefix)) for item in bucket.items(prefix)}
    numbers = {item: int(match[1]) for item, match in names.items() if match}
    if not numbers:
        own = "" if page(config, 0) else ", and this pair is none that Neuronpedia is known to have"
        raise UserError(
            f"Cannot get labels of {config.neuronpedia_model_id}/{config.neuronpedia_sae_id}.\n"
            f"Why: there are none under {bucket.address}/{prefix}{own}.\n"
            "Do: name Neuronpedia's ids of this SAE in a .toml file (neuronpedia_model_id, neuronpedia_sae_id) if it "
            "has others there, or make labels with `neuroscope_jax labels generate`."
        )
    return sorted(numbers, key=lambda item: numbers[item])


def _read(bucket: Bucket, batch: Item, config: NeuroscopeConfig, width: int, found: Found) -> None:
    decoder = msgspec.json.Decoder(Record)
    for number, line in enumerate(bucket.lines(batch), 1):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
            found.add(_index(record, config, width), record)
        except ValueError as error:  # what the decoder raises is one too
            place = f"{bucket.address}/{batch.key}, line {number}"
            raise UserError(f"{place}: {error}; nothing was written") from error


def _index(record: Record, config: NeuroscopeConfig, width: int) -> int:
    """The record's feature. Raises ValueError for a record of another SAE than the config's."""
    made, used = (record.model_id, record.layer), (config.neuronpedia_model_id, config.neuronpedia_sae_id)
    if made != used:
        raise ValueError(f"a label of {'/'.join(made)}, expected one of {'/'.join(used)}")
    if not re.fullmatch(r"\d{1,9}", str(record.index), re.ASCII):
        raise ValueError(f"index is {record.index!r}, expected the number of a feature")
    index = int(record.index)
    if index >= width:
        raise ValueError(f"a label of feature {index}, but this SAE has {width} features, 0 to {width - 1}")
    return index


def _detail(record: Record, candidates: int) -> LabelDetail:
    return LabelDetail(
        label=" ".join((record.description or "").split()),
        status="labelled",
        model=record.explanation_model_name,
        date=record.created_at if isinstance(record.created_at, str) else None,
        type_name=record.type_name,
        alternatives=candidates - 1,
    )
