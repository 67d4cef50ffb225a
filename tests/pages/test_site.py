"""A report is whole: every feature in the index and in a shard, every figure that of the files, nothing markup."""

import dataclasses
import html
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from neuroscope_jax.config import load_preset
from neuroscope_jax.features.logits import TokenScore, TokenScores
from neuroscope_jax.features.neuronpedia import SITE
from neuroscope_jax.pages import site
from neuroscope_jax.pages.badges import FLAGS
from neuroscope_jax.pages.examples import Examples
from neuroscope_jax.pages.facts import facts
from tests.features.measured import PAIR, PROVENANCE, TOKENS, WIDTH, activations
from tests.pages.conftest import HOSTILE, TEXT, called, examples_of, rising


def shards(report):
    """(texts, records) of each shard, in order."""
    found = sorted(report.glob("data/[0-9]*.js"))
    for number, script in enumerate(found):
        name, content = called(script)
        assert name == number
        yield content["texts"], content["features"]


@pytest.fixture
def columns(report):
    (found,) = called(report / "data" / "index.js")
    return found


def test_index_rows_are_the_features(columns):
    stored = activations()
    assert columns["id"] == list(range(WIDTH))
    assert {len(column) for column in columns.values()} == {WIDTH}
    fired = (stored > 0).sum(axis=0)
    assert columns["rate"] == pytest.approx((fired / TOKENS).tolist(), rel=1e-3)
    most = [float(column.max()) if n else None for column, n in zip(stored.T, fired, strict=True)]
    assert [m is None for m in columns["max"]] == [m is None for m in most]
    assert [m for m in columns["max"] if m] == pytest.approx([m for m in most if m], rel=1e-3)
    for i, text in HOSTILE.items():
        assert columns["label"][i] == text.strip()
    assert columns["label"][6] is None  # taken back
    assert columns["source"][:8] == [*["Claude"] * 5, None, None, None]
    assert columns["confidence"][:8] == [*["high"] * 5, *[None] * 3]
    assert columns["score"][:3] == [None, 0.55, None]


def test_flags(columns):
    names = list(FLAGS)
    found = [{name for i, name in enumerate(names) if bits >> i & 1} for bits in columns["flags"]]
    fired = (activations() > 0).sum(axis=0)
    for i, n in enumerate(fired):
        held = {name for name, holds in (("dead", n == 0), ("rare", 0 < n < 10), ("dense", n > TOKENS / 10)) if holds}
        assert found[i] - {"low score", "too few texts to score"} == held
    assert [i for i in range(WIDTH) if "low score" in found[i]] == [1, 6]
    assert [i for i in range(WIDTH) if "too few texts to score" in found[i]] == [2]


def test_every_feature_is_in_its_shard(tmp_path, everything, files):
    assert everything.measured is not None
    chosen = list(range(0, WIDTH, 2))
    folder = tmp_path / "some"
    folder.mkdir()
    sources = site.Sources(Examples(files.examples, PROVENANCE), None, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "PER_SHARD", 5)
        site.write(folder, everything, everything.measured, chosen, sources)
    (facts,) = called(folder / "data" / "report.js")
    assert (facts["per_shard"], facts["shaded"]) == (5, False)
    (columns,) = called(folder / "data" / "index.js")
    assert columns["id"] == chosen
    sizes = [len(records) for _, records in shards(folder)]
    assert sizes == [5, 5, 5, 5, 4]
    counts = [record["count"] for _, records in shards(folder) for record in records]
    assert counts == (activations() > 0).sum(axis=0)[chosen].tolist()


def test_statistics(report):
    stored = activations().astype(np.float64)
    ((_, records),) = shards(report)
    for record, column in zip(records, stored.T, strict=True):
        fired = column[column > 0]
        assert (record["count"], sum(record["histogram"])) == (len(fired), len(fired))
        figures = [record[name] for name in ("mean", "deviation", "max")]
        if len(fired):
            assert figures == pytest.approx([fired.mean(), fired.std(), fired.max()], rel=1e-3)
        else:
            assert figures == [None] * 3


def test_examples_are_shaded_token_by_token(report, tokenizer):
    ((texts, records),) = shards(report)
    for feature, record in enumerate(records):
        wanted = [row for row in examples_of(feature, tokenizer)[:2] if 1 <= feature <= 9]
        assert [example["kind"] for example in record["examples"]] == [row["kind"] for row in wanted]
        for example, row in zip(record["examples"], wanted, strict=True):
            assert "".join(texts[i] for i in example["tokens"]) == TEXT
            shades = dict(zip(example["shades"][::2], example["shades"][1::2], strict=True))
            assert 0 not in shades  # silent at the first token
            assert max(shades.values()) == pytest.approx(max(rising(row)), rel=1e-3)
            assert (example["cut"], example["quantile"]) == ([True, False], row["quantile"])
            assert example["activation"] == row["activation"]
    assert len(texts) == len(set(texts))


def test_labels_and_scores(report):
    ((_, records),) = shards(report)
    assert records[1]["label"]["score"]["wrong"] == [{"text": "<b>wrong</b>\u2028", "was_active": True}]
    assert records[6]["label"]["replaced"]
    assert [records[i]["source"] for i in (1, 6)] == ["Claude (labeller-1), made here", None]
    assert records[7]["label"]["reason"] == "refusal"
    assert records[8]["label"] is None


def test_the_index_says_how_to_read_the_scores(report):
    text = html.unescape((report / "index.html").read_text(encoding="utf-8"))
    assert "its bar is empty at 0.5, which is chance" in text
    tried = "2 labels tried on features they were not written for scored 0.51, too few to tell (0.5 expected by chance)"
    assert f"Control: {tried}." in text
    (facts,) = called(report / "data" / "report.js")
    assert facts["control"] == tried
    assert dict(facts["origin"])["labels (Claude, made here)"].startswith("made by labeller-1 ")


def test_neuronpedias_page_where_it_has_one(report, everything, files):
    assert everything.measured is not None
    for config, page in (
        (everything.config, None),
        (load_preset("gemma-2-2b-it"), f"{SITE}/gemma-2-2b/20-gemmascope-res-16k/"),
    ):
        pair = dataclasses.replace(everything, config=config)
        assert facts(pair, everything.measured, 64, "1", True)["neuronpedia"] == page


def test_logits_where_known(tmp_path, everything, files):
    assert everything.measured is not None
    scores = TokenScores([TokenScore(5, "</script>", 1.25)], [TokenScore(6, "\n", -2.5)])
    sources = site.Sources(Examples(files.examples, PROVENANCE), None, iter([(1, scores), (4, scores)]))
    (tmp_path / "out").mkdir()
    site.write(tmp_path / "out", everything, everything.measured, [1, 4], sources)
    ((_, records),) = shards(tmp_path / "out")
    assert [record["logits"] for record in records] == [{"top": [["</script>", 1.25]], "bottom": [["\n", -2.5]]}] * 2


class _Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href")]


def test_pages_need_nothing_from_elsewhere(report):
    for page in ("index.html", "feature.html"):
        parser = _Addresses()
        parser.feed((report / page).read_text(encoding="utf-8"))
        assert len(parser.found) > 5
        for address in parser.found:
            assert address == "data:," or (report / address.partition("?")[0]).is_file(), address
    code = "".join(path.read_text(encoding="utf-8") for path in report.glob("*.*s"))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", code)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", code)


def test_shells_are_escaped(tmp_path, everything, files):
    assert everything.measured is not None
    evil = "</title><script>alert(1)</script>\"'&"
    made = dataclasses.replace(PROVENANCE, corpus=evil, pair=dataclasses.replace(PAIR, model_id=evil))
    measured = dataclasses.replace(everything.measured, provenance=made)
    (tmp_path / "out").mkdir()
    sources = site.Sources(Examples(files.examples, PROVENANCE), None, None)
    site.write(tmp_path / "out", everything, measured, [1], sources)
    for page in ("index.html", "feature.html"):
        text = (tmp_path / "out" / page).read_text(encoding="utf-8")
        assert "alert(1)</script>" not in text
        assert evil in html.unescape(text)
