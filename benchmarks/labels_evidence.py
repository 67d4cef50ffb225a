"""The files of a corpus pass that never was: as many features as wanted, each with as many examples as a pass keeps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neuroscope_jax.corpus import parquet, schemas
from neuroscope_jax.corpus.examples import HELD_OUT, QUANTILES, TOP
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.corpus.windows import BEFORE, WIDTH
from neuroscope_jax.features.calibration import BINS, FeatureStats, Provenance, save_stats
from neuroscope_jax.identity import PairIdentity
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER

KINDS = ["top"] * TOP + ["random"] * len(QUANTILES) + ["held_out"] * HELD_OUT
SHOWN = TOP + len(QUANTILES)  # of a feature, whose text is in the file
FEATURES_AT_ONCE = 500
TEXTS = 997  # different ones for each part of a context
FIRINGS, STRONGEST = 1_000, 60.0


def write(folder: str, width: int) -> None:
    """Write statistics and examples of `width` features into a folder."""
    files, made = Files(Path(folder) / "made_up_stats.json"), provenance(width)
    parquet.write(files.examples, _tables(width), schemas.examples(), made)
    save_stats(files.stats, _stats(width), made)


def provenance(width: int) -> Provenance:
    """Of a pass over nothing."""
    return Provenance(
        pair=PairIdentity("made up", "0" * 64, "made up", "0" * 64, width, 0),
        model_revision=None,
        sae_revision=None,
        tokenizer_sha256="0" * 64,
        corpus="made up",
        corpus_sha256="0" * 64,
        corpus_documents=1,
        samples=1,
        sample_length=WIDTH,
        seed=0,
        dtype="float32",
        bos="",
        sae_input_norm="none",
        made="",
        version="",
        run="made up",
    )


def _stats(width: int) -> FeatureStats:
    histogram = np.zeros((width, BINS), np.int64)
    histogram[:, BINS // 2] = FIRINGS
    return FeatureStats(
        tokens=100 * FIRINGS,
        count=np.full(width, FIRINGS, np.int64),
        mean_activation=np.full(width, STRONGEST / 2),
        activation_variance=np.full(width, STRONGEST),
        max_activation=np.full(width, STRONGEST),
        histogram=histogram,
    )


def _tables(width: int) -> Iterator[Any]:
    """Arrow tables of all rows, made from columns, as a million rows would take minutes one by one."""
    rng = np.random.default_rng(0)
    tokenizer = ChatTokenizer.load(DEMO_FOLDER / "model")
    spoken = [i for i in range(tokenizer.vocabulary_size) if i not in tokenizer.control_ids]
    ids = rng.choice(np.array(spoken, np.int32), (TEXTS, WIDTH))
    parts = (ids[:, :BEFORE], ids[:, BEFORE : BEFORE + 1], ids[:, BEFORE + 1 :])
    texts = [np.array([tokenizer.spelled_out(row) for row in part.tolist()], object) for part in parts]
    for first in range(0, width, FEATURES_AT_ONCE):
        yield _table(np.arange(first, min(first + FEATURES_AT_ONCE, width)), ids, texts, rng)


def _table(features: np.ndarray, ids: np.ndarray, texts: list[np.ndarray], rng: np.random.Generator) -> Any:
    import pyarrow as pa

    count = len(features) * len(KINDS)
    shown = np.tile(np.arange(len(KINDS)) < SHOWN, len(features))
    picked = rng.integers(0, TEXTS, (3, count))
    contexts = np.concatenate(
        [ids[picked[0], :BEFORE], ids[picked[1], BEFORE : BEFORE + 1], ids[picked[2], BEFORE + 1 :]], 1
    )
    columns = {
        "feature": np.repeat(features, len(KINDS)),
        "kind": KINDS * len(features),
        "rank": np.tile([*range(TOP), *range(len(QUANTILES)), *range(HELD_OUT)], len(features)),
        "quantile": pa.array(rng.random(count), mask=np.tile(np.arange(len(KINDS)) < TOP, len(features))),
        "activation": rng.uniform(1, STRONGEST, count),
        "document": np.arange(count),
        "sample": np.zeros(count, int),
        "offset": np.full(count, BEFORE),
        "ids": pa.ListArray.from_arrays(np.arange(0, contexts.size + 1, WIDTH), contexts.ravel()),
        "at": np.full(count, BEFORE),
        "cut_before": np.zeros(count, bool),
        "cut_after": np.zeros(count, bool),
    } | {
        name: pa.array(np.where(shown, text[picked[i]], None))
        for i, (name, text) in enumerate(zip(("before", "token", "after"), texts, strict=True))
    }
    schema = schemas.examples()
    return pa.table([pa.array(columns[name]).cast(schema.field(name).type) for name in schema.names], schema=schema)
