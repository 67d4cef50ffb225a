"""Shares by weight, their order, and sources that run out."""

import json
import logging
from collections import Counter
from pathlib import Path

import pytest

from neuroscope_jax.config import CorpusSource
from neuroscope_jax.corpus.mix import Mix, name_of, turns
from neuroscope_jax.corpus.source import Document


def source(folder: Path, name: str, count: int, weight: float = 1.0) -> CorpusSource:
    """A file of `count` documents."""
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"text": f"{name} {i}"}) + "\n" for i in range(count)))
    return CorpusSource(path=str(path), weight=weight)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.0], [3.0, 1.0], [0.5, 0.3, 0.2], [1e-3, 7.0, 2.0]])
def test_every_prefix_follows_the_weights(weights: list[float]) -> None:
    total = sum(weights)
    order = list(turns(500, weights, [None] * len(weights)))
    for length in range(1, 501):
        counts = Counter(order[:length])
        for i, weight in enumerate(weights):
            assert abs(counts[i] - length * weight / total) < len(weights)


def test_a_longer_corpus_starts_with_the_shorter_one() -> None:
    assert (
        list(turns(100, [2, 1, 5], [None, 20, 60]))
        == list(turns(60, [2, 1, 5], [None, 20, 60])) + list(turns(100, [2, 1, 5], [None, 20, 60]))[60:]
    )


def test_what_one_source_lacks_the_others_give_by_their_weights() -> None:
    counts = Counter(turns(100, [2, 1, 1], [10, None, None]))
    assert counts == {0: 10, 1: 45, 2: 45}
    assert Counter(turns(100, [2, 1], [10, 20])) == {0: 10, 1: 20}
    assert not list(turns(100, [1, 1], [0, 0]))


def test_documents_keep_their_rows_and_come_in_turns(tmp_path: Path) -> None:
    asked = [source(tmp_path, "a", 40, 3.0), source(tmp_path, "b", 40)]
    mix = Mix(asked, 20)
    found = list(mix)
    assert mix.shares == [15, 5]
    assert not mix.whole
    assert [i for i, _ in found][:8] == [0, 0, 1, 0, 0, 0, 1, 0]
    for i, document in found:
        assert document == Document(f"{'ab'[i]} {document.row}", f"{'ab'[i]}.jsonl", document.row)
    assert len({(i, d.row) for i, d in found}) == 20
    assert list(Mix(asked, 20)) == found


def test_sources_that_run_out_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked = [source(tmp_path, "a", 3), source(tmp_path, "b", 40)]
    with caplog.at_level(logging.INFO):
        mix = Mix(asked, 20)
    assert mix.shares == [3, 17]
    assert not mix.whole
    assert f"{asked[0].path} gives all of its 3 documents" in caplog.messages
    everything = Mix(asked, 100)
    assert everything.whole
    assert Counter(i for i, _ in everything) == {0: 3, 1: 40}


def test_a_source_that_could_not_be_counted_may_end_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mix = Mix([source(tmp_path, "a", 3), source(tmp_path, "b", 40)], 20)
    monkeypatch.setattr(mix, "shares", [3, 17])
    monkeypatch.setattr(mix.sources[1], "choose", lambda many, seed: iter([Document("b 7", "b.jsonl", 7)]))
    assert [d.text for i, d in mix if i == 1] == ["b 7"]
    assert mix.whole
    assert [m for m in caplog.messages if "ended before its share of 17 documents" in m]


def test_a_mix_is_named_by_its_shares() -> None:
    sources = (CorpusSource(dataset="wikitext", config="c"), CorpusSource(path="mine", weight=3.0))
    assert name_of(sources) == "25% Salesforce/wikitext c train + 75% mine"
    assert name_of(sources[1:]) == "mine"
