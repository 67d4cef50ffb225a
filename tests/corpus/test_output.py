"""The four files of a pass are replaced together or not at all; shards are told from other files."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from neuroscope_jax.corpus import output, shards
from neuroscope_jax.corpus.collected import Collected, Entries
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.corpus.passages import OUTSIDE, Passages
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import read_stats
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER
from tests.features.measured import PAIR, PROVENANCE

ONE_FEATURE = dataclasses.replace(PROVENANCE, pair=dataclasses.replace(PAIR, width=1))


@pytest.fixture(scope="module")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(DEMO_FOLDER / "model")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Those of an earlier pass."""
    files = Files(tmp_path / "pair_stats.json")
    for path in files.all():
        path.write_text("earlier")
    return files


def collected(tokens: int) -> Collected:
    """One feature that never fired."""
    none = Entries(*(np.zeros((1, 4), kind) for kind in (np.uint32, np.int32, np.int32, np.float32)))
    zeros = np.zeros(1)
    return Collected(
        tokens, zeros.astype(int), zeros, zeros, np.zeros((1, 32), int), none, none, np.zeros((4, 1), np.uint32)
    )


def one_sample() -> Passages:
    """Thirty tokens, with a window from the fifth on."""
    ids = np.full((1, STRIDE), OUTSIDE, np.int32)
    ids[0, :30] = np.arange(300, 330)
    return Passages(np.array([7]), np.array([2]), ids, np.array([0]), np.array([5]))


def test_all_four_are_replaced(files: Files, tokenizer: ChatTokenizer) -> None:
    assert output.write(files, collected(30), one_sample(), tokenizer, ONE_FEATURE) == 0
    assert read_stats(files.stats)[0].tokens == 30
    assert pq.read_table(files.examples).num_rows == 0
    (window,) = pq.read_table(files.windows).to_pylist()
    assert (window["document"], window["offset"]) == (7, 2 * STRIDE + 4)
    assert window["ids"] == list(range(304, 329))
    assert sorted(files.stats.parent.iterdir()) == sorted(files.all())


def test_where_the_last_cannot_be_written_all_stay(files: Files, tokenizer: ChatTokenizer) -> None:
    with pytest.raises(ValueError, match="count is"):
        output.write(files, collected(30), one_sample(), tokenizer, PROVENANCE)  # of 48 features
    assert [path.read_text() for path in files.all()] == ["earlier"] * 4
    assert sorted(files.stats.parent.iterdir()) == sorted(files.all())


def test_texts_of_which_no_token_counts_are_refused(files: Files, tokenizer: ChatTokenizer) -> None:
    with pytest.raises(UserError, match="texts/: no text to calibrate with"):
        output.write(files, collected(0), one_sample(), tokenizer, ONE_FEATURE)
    assert [path.read_text() for path in files.all()] == ["earlier"] * 4


def test_other_files_are_no_shards(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    (tmp_path / "text.npz").write_text("text")
    for name in ("array.npy", "arrays.npz", "text.npz", "gone.npz"):
        with pytest.raises(UserError, match="expected a shard of `calibrate run --distributed`"):
            shards.load(tmp_path / name)


def test_the_passages_are_those_that_examples_lie_in(files: Files, tokenizer: ChatTokenizer) -> None:
    ids = np.full((4, STRIDE), OUTSIDE, np.int32)
    for i, length in enumerate((STRIDE, 30, STRIDE, 40)):
        ids[i, :length] = np.arange(300 + 200 * i, 300 + 200 * i + length)
    # The second sample is a window's, the third was a candidate: it says the same as the first.
    ids[2] = ids[0]
    passages = Passages(np.array([3, 3, 5, 8]), np.array([0, 1, 0, 2]), ids, np.array([-1, 0, -1, -1]), np.full(4, 1))
    firings = [(3, 20, 5.0), (5, 20, 4.0), (8, 2 * STRIDE + 7, 3.0)]
    columns = np.zeros((3, 1, 4))
    columns[:, 0, :3] = np.array(firings).T
    document, offset, activation = columns
    top = Entries(np.zeros((1, 4), np.uint32), document.astype(int), offset.astype(int), activation.astype(np.float32))
    found = dataclasses.replace(collected(30), count=np.array([3]), mean=np.array([4.0]), m2=np.array([2.0]), top=top)
    found.histogram[0, 7] = 3
    output.write(files, found, passages, tokenizer, ONE_FEATURE)
    examples = pq.read_table(files.examples).to_pylist()
    assert [(row["document"], row["sample"]) for row in examples] == [(3, 0), (8, 2)]
    assert pq.read_table(files.passages).to_pylist() == [
        {"document": 3, "sample": 0, "ids": list(range(300, 300 + STRIDE))},
        {"document": 8, "sample": 2, "ids": list(range(900, 940))},
    ]


def test_passages_are_written_a_few_at_a_time(
    files: Files, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PASSAGES_AT_ONCE", 2)
    ids = np.arange(300, 300 + 5 * STRIDE, dtype=np.int32).reshape(5, STRIDE)
    passages = Passages(np.arange(5), np.zeros(5, int), ids, np.full(5, -1), np.full(5, 1))
    document, offset = np.arange(5)[None], np.full((1, 5), 30)
    top = Entries(np.zeros((1, 5), np.uint32), document, offset, np.ones((1, 5), np.float32))
    found = dataclasses.replace(collected(30), count=np.array([5]), mean=np.ones(1), top=top)
    found.histogram[0, 7] = 5
    output.write(files, found, passages, tokenizer, ONE_FEATURE)
    file = pq.ParquetFile(files.passages)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [2, 2, 1]
    assert file.read()["ids"].to_pylist() == ids.tolist()
