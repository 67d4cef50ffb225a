"""A small pass whose files are written by hand: 48 features, known examples, hostile labels and texts."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.corpus import parquet, schemas
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.corpus.shading import Shading
from neuroscope_jax.features.calibration import Provenance, cached_stats_path, save_stats
from neuroscope_jax.features.label_details import Control, LabelDetail, LabelDetails, Score, WrongSequence, save_labels
from neuroscope_jax.features.labels import labels_path
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER
from neuroscope_jax.pages import site
from neuroscope_jax.pages.contexts import Pieces
from neuroscope_jax.pages.examples import Examples
from neuroscope_jax.pages.known import Known, known, read_pass
from tests.features.measured import PAIR, PROVENANCE, WIDTH, activations, measured

HOSTILE = {
    0: "</script><script>document.title='taken'</script>",
    1: "\"quotes\" 'and' &amp; <img src=x onerror=document.title='taken'>",
    2: "line\u2028separators\u2029 and \u202eoverride\u202c \x1b[31m red",
    3: "${1} `template` \\u003c/script> __proto__ constructor",
    4: "שלום وعبارة <!--",
}
CONFIG = f"""
model_id = "{PAIR.model_id}"
sae_repo = "org/sae"
sae_path = "layer_3/width_48/average_l0_12/params.npz"
target_layer = 3
neuronpedia_model_id = "model"
neuronpedia_sae_id = "3-res-48"
"""
TEXT = "Hi </script>, she said: 東京 🙂\nbye"


@pytest.fixture(scope="session")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(DEMO_FOLDER / "model")


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pair that is on no machine, and a cache folder that has nothing of it."""
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "pair.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.fixture
def config(config_file: Path) -> NeuroscopeConfig:
    return load_preset(str(config_file))


@pytest.fixture
def files(config: NeuroscopeConfig, tokenizer: ChatTokenizer) -> Files:
    """The files of a pass over stored activations; features 1 to 9 have examples."""
    files = Files(cached_stats_path(config))
    save_stats(files.stats, measured(activations()), PROVENANCE)
    write_examples(files.examples, tokenizer, PROVENANCE)
    return files


def write_examples(path: Path, tokenizer: ChatTokenizer, provenance: Provenance) -> None:
    rows = [row for feature in range(1, 10) for row in examples_of(feature, tokenizer)]
    # Two row groups, the second of which begins within feature 5.
    tables = (pa.Table.from_pylist(part, schemas.examples()) for part in (rows[:14], rows[14:]))
    parquet.write(path, tables, schemas.examples(), provenance)


def examples_of(feature: int, tokenizer: ChatTokenizer) -> list[dict[str, Any]]:
    """One of each kind; the token in the middle is the one that fires."""
    ids = tokenizer.encode_documents([TEXT])[0]
    at = len(ids) // 2
    texts = [tokenizer.spelled_out(side) for side in (ids[:at], ids[at : at + 1], ids[at + 1 :])]
    return [
        {
            "feature": feature,
            "kind": kind,
            "rank": 0,
            "quantile": None if kind == "top" else 0.25,
            "activation": float(feature + i),
            "document": 10 * feature + i,
            "sample": 0,
            "offset": at,
            "ids": ids,
            "at": at,
            "cut_before": True,
            "cut_after": False,
        }
        | dict(zip(("before", "token", "after"), texts if kind != "held_out" else (None,) * 3, strict=True))
        for i, kind in enumerate(("top", "random", "held_out"))
    ]


@pytest.fixture
def shading(files: Files, tokenizer: ChatTokenizer) -> Shading:
    """Activations that rise from token to token of each example."""
    rows = [row for f in range(1, 10) for row in examples_of(f, tokenizer) if row["kind"] != "held_out"]
    path = files.examples.with_name("shading.parquet")
    columns = [{k: row[k] for k in ("feature", "document", "offset")} | {"activations": rising(row)} for row in rows]
    table = pa.Table.from_pylist(columns, schemas.shading())
    parquet.write(path, [table], schemas.shading(), PROVENANCE)
    return Shading(parquet.opened(path, schemas.shading())[0])


def rising(row: dict[str, Any]) -> list[float]:
    """0 at the first token, then half a unit more at each."""
    return (np.arange(len(row["ids"])) / 2).tolist()


SCORED = Score("scored", 0.55, 0.6, 0.5, 0.07, 50, 20, 10, 1, "judge-1", [WrongSequence("<b>wrong</b>\u2028", True)])
FEW = Score("insufficient", None, None, None, None, 3, 20, 10, 0, "judge-1", [])


@pytest.fixture
def labelled(config: NeuroscopeConfig) -> Path:
    """Label files of the pair: hostile labels, one that scored low, one that could not be scored, one taken back."""
    detail = LabelDetail("", "labelled", confidence="high", pattern="<i>pattern</i>", model="labeller-1", date="2026")
    features = {i: dataclasses.replace(detail, label=text) for i, text in HOSTILE.items()}
    features[1] = dataclasses.replace(features[1], score=SCORED)
    features[2] = dataclasses.replace(features[2], score=FEW)
    features[6] = dataclasses.replace(detail, label="taken back", score=SCORED, replaced=True)
    features[7] = LabelDetail(None, "failed", reason="refusal")
    details = LabelDetails(
        source="autointerp",
        pair=PAIR,
        neuronpedia_model_id=config.neuronpedia_model_id,
        neuronpedia_sae_id=config.neuronpedia_sae_id,
        width=WIDTH,
        made="2026-01-02T03:04:05+00:00",
        version="0.1.0",
        labeler="labeller-1",
        prompt_version="1",
        run=PROVENANCE.run,
        control=Control(0.51, 2),
        features=features,
    )
    path = labels_path(config, "autointerp")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_labels(path, details)
    return path


@pytest.fixture
def everything(config: NeuroscopeConfig, files: Files, labelled: Path) -> Known:
    return known(config, read_pass(config))


@pytest.fixture
def report(tmp_path: Path, everything: Known, files: Files, shading: Shading, tokenizer: ChatTokenizer) -> Path:
    """A report on all features with shaded contexts."""
    folder = tmp_path / "report"
    folder.mkdir()
    assert everything.measured is not None
    sources = site.Sources(Examples(files.examples, PROVENANCE), (shading, Pieces(tokenizer)), None)
    site.write(folder, everything, everything.measured, list(range(WIDTH)), sources)
    return folder


def called(script: Path) -> Iterator[Any]:
    """The arguments of the call that a data script is."""
    inside = re.fullmatch(r"neuroscope\.\w+\((.*)\);\n", script.read_text(encoding="ascii"), re.DOTALL)
    assert inside
    return iter(msgspec.json.decode(f"[{inside[1]}]"))
