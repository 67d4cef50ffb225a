"""Evidence gives what is in the files, whatever the order it is asked for in; files that do not fit are refused."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, decoders, models

from neuroscope_jax.autointerp.evidence import Evidence, Firing, Shown, whole_characters
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.chat import ChatTokenizer
from tests.autointerp.made_up import as_shown, evidence, firing


@pytest.fixture
def files(demo_pass: Files, tmp_path: Path) -> Files:
    """The pass with examples of its first features only, in row groups so small that most of them lie in several."""
    copy = Files(tmp_path / "pair_stats.json")
    shutil.copy(demo_pass.stats, copy.stats)
    shutil.copy(demo_pass.windows, copy.windows)
    pq.write_table(
        pq.ParquetFile(demo_pass.examples).read_row_group(0).slice(0, 3000), copy.examples, row_group_size=37
    )
    return copy


def assert_holds(found: Firing, row: dict[str, object]) -> None:
    """The example is the one of this row."""
    fields = {**vars(found), "ids": found.ids.tolist()}
    assert fields == {name: row[name] for name in fields}
    assert isinstance(found, Shown) == (row["kind"] != "held_out")


def test_every_feature_has_the_rows_of_its_own(files: Files, tokenizer: ChatTokenizer) -> None:
    rows: dict[int, dict[str, list[dict[str, object]]]] = {}
    for row in pq.read_table(files.examples).to_pylist():
        kinds = rows.setdefault(row["feature"], {"top": [], "random": [], "held_out": []})
        assert row["rank"] == len(kinds[row["kind"]])
        kinds[row["kind"]].append(row)
    read = Evidence(files, tokenizer)
    assert read.features() == sorted(rows)
    for feature in [*read.features(), *read.features()[::-7]]:
        found = read.of(feature)
        assert found.feature == feature
        assert found.count == read.stats.count[feature] > 0
        for kind, expected in rows[feature].items():
            assert len(getattr(found, kind)) == len(expected)
            for example, row in zip(getattr(found, kind), expected, strict=True):
                assert_holds(example, row)


def test_a_row_group_is_read_once(files: Files, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    read = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda f, i, *a: reads.append(i) or read(f, i, *a))
    found = Evidence(files, tokenizer)
    for feature in found.features():
        found.of(feature)
    assert reads == list(range(pq.ParquetFile(files.examples).num_row_groups))


def test_a_feature_that_never_fired_has_no_examples(demo_evidence: Evidence) -> None:
    silent = next(f for f, count in enumerate(demo_evidence.stats.count) if count == 0)
    found = demo_evidence.of(silent)
    assert (found.count, found.all, found.usual_token) == (0, [], None)


def test_the_usual_token_is_the_most_frequent_of_the_top_then_the_strongest() -> None:
    def usual(*tokens: int) -> int | None:
        return evidence([as_shown(firing([9, token, 9], 1, i)) for i, token in enumerate(tokens)]).usual_token

    assert usual(7, 8, 8) == 8
    assert usual(7, 8, 8, 7, 6) == 7


def test_windows_are_those_of_the_file(demo_evidence: Evidence) -> None:
    rows = pq.read_table(demo_evidence.files.windows).to_pylist()
    pool = demo_evidence.pool
    assert [ids[:length].tolist() for ids, length in zip(pool.ids, pool.length, strict=True)] == [
        r["ids"] for r in rows
    ]
    for feature in (*demo_evidence.features()[::97], demo_evidence.stats.width - 1):
        fires = [row["fired"][feature // 8] >> feature % 8 & 1 for row in rows]
        assert pool.silent(feature).tolist() == [not bit for bit in fires]
    token = rows[5]["ids"][3]
    assert pool.holding(token).tolist() == [token in row["ids"] for row in rows]
    assert len(np.unique(pool.sample)) == len(rows)


def test_a_character_of_several_tokens_is_shown_whole() -> None:
    vocabulary = {name: i for i, name in enumerate(["<bos>", "▁a", "b", *(f"<0x{n:02X}>" for n in range(256))])}
    made = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    made.add_special_tokens(["<bos>"])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer = ChatTokenizer(made, None, {"bos_token": "<bos>"}, [], "made up")
    face = [3 + byte for byte in "😀".encode()]
    ids = np.array([1, *face, *face, 2])
    assert whole_characters(ids, 3, tokenizer) == (" a", "😀", "😀b")
    assert whole_characters(ids, 5, tokenizer) == (" a😀", "😀", "b")
    assert whole_characters(ids, 9, tokenizer) == (" a😀😀", "b", "")
    assert whole_characters(ids[2:], 0, tokenizer) == ("", "�" * 3, "😀b")  # the context begins within the first face
    assert whole_characters(ids[:4], 3, tokenizer) == (" a", "�", "")
    assert whole_characters(np.array([0, 2]), 1, tokenizer) == ("<bos>", "b", "")


def test_broken_pieces_are_put_together(files: Files, tokenizer: ChatTokenizer) -> None:
    table = pq.read_table(files.examples).slice(0, 1)
    texts = {name: pa.array(["\ufffd"]) for name in ("before", "token", "after")}
    for name, column in texts.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    pq.write_table(table, files.examples)
    (row,) = table.to_pylist()
    (example,) = Evidence(files, tokenizer).of(row["feature"]).top
    ids, at = row["ids"], row["at"]
    expected = [tokenizer.spelled_out(part) for part in (ids[:at], ids[at : at + 1], ids[at + 1 :])]
    assert [example.before, example.token, example.after] == expected


def test_files_of_another_run_are_refused(files: Files, tokenizer: ChatTokenizer) -> None:
    for path in (files.windows, files.examples):
        table = pq.read_table(path)
        about = table.schema.metadata[b"neuroscope"].replace(b'"run":"', b'"run":"other-')
        pq.write_table(table.replace_schema_metadata({b"neuroscope": about}), path)
        with pytest.raises(UserError, match=rf"{path.name}: of run other-.*calibrate run"):
            Evidence(files, tokenizer).pool  # noqa: B018


def test_damaged_files_are_named(files: Files, tokenizer: ChatTokenizer) -> None:
    table = pq.read_table(files.examples)
    pq.write_table(table.take(list(range(len(table)))[::-1]), files.examples)
    with pytest.raises(UserError, match="examples.parquet: feature does not rise"):
        Evidence(files, tokenizer)
    files.examples.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="examples.parquet: damaged"):
        Evidence(files, tokenizer)
    files.examples.unlink()
    with pytest.raises(UserError, match="examples.parquet: no such file"):
        Evidence(files, tokenizer)


def test_windows_of_fewer_features_are_refused(files: Files, tokenizer: ChatTokenizer) -> None:
    table = pq.read_table(files.windows)
    short = pa.array([fired[:100] for fired in table["fired"].to_pylist()], pa.binary())
    pq.write_table(table.set_column(table.schema.get_field_index("fired"), "fired", short), files.windows)
    with pytest.raises(UserError, match="windows.parquet: fired has 100 bytes, expected one bit for each of 2048"):
        Evidence(files, tokenizer).pool  # noqa: B018


def test_evidence_is_of_the_statistics_beside_it(demo_evidence: Evidence) -> None:
    assert demo_evidence.provenance.pair.width == demo_evidence.stats.width == 2048
    assert dataclasses.asdict(demo_evidence.provenance.pair)["layer"] == 3


@pytest.mark.parametrize("name", ["examples", "windows"])
def test_another_file_of_the_pass_under_this_name_is_told(
    demo_pass: Files, tokenizer: ChatTokenizer, tmp_path: Path, name: str
) -> None:
    files = Files(tmp_path / demo_pass.stats.name)
    for path in demo_pass.all():
        shutil.copy(path, tmp_path)
    shutil.copy(demo_pass.passages, getattr(files, name))
    with pytest.raises(UserError, match=f"_{name}.parquet: lacks .*calibrate run") as caught:
        Evidence(files, tokenizer).pool  # noqa: B018
    assert ("fired" if name == "windows" else "feature, kind") in str(caught.value)
