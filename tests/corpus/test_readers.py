"""Readers and folders: each format, what is skipped and how it is told, and memory that does not grow."""

import gzip
import json
import logging
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from neuroscope_jax.corpus.folder import Folder
from neuroscope_jax.corpus.source import Document
from neuroscope_jax.errors import UserError


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def documents(path: Path, text_field: str = "text") -> list[Document]:
    return list(Folder(path, text_field, "given").read())


def texts(path: Path, text_field: str = "text") -> list[str]:
    return [document.text for document in documents(path, text_field)]


def write_parquet(path: Path, rows: Sequence[object], kind: object = None, name: str = "text") -> None:
    parquet.write_table(pyarrow.table({"n": range(len(rows)), name: pyarrow.array(rows, kind)}), path)


def test_each_format_by_itself(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\n\ntwo \xc3\xa9\n")
    assert documents(tmp_path / "a.txt") == [Document("one\n\ntwo é\n", "a.txt", 0)]
    (tmp_path / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + lines({"text": "x", "n": 1}) + b"\n" + lines({"text": "y"}))
    expected = [("x", 0), ("y", 2)]
    assert [(d.text, d.row) for d in documents(tmp_path / "b.jsonl")] == expected
    (tmp_path / "B.JSONL.GZ").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    assert [(d.text, d.row) for d in documents(tmp_path / "B.JSONL.GZ")] == expected
    write_parquet(tmp_path / "c.parquet", ["x", None, " ", "y"])
    assert [(d.text, d.row) for d in documents(tmp_path / "c.parquet")] == [("x", 0), ("y", 3)]


@pytest.mark.parametrize(
    "kind", [pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]
)
def test_every_kind_of_text_column(tmp_path: Path, kind: pyarrow.DataType) -> None:
    write_parquet(tmp_path / "a.parquet", ["x", "y", "x"], kind)
    assert texts(tmp_path / "a.parquet") == ["x", "y", "x"]


def test_the_text_may_be_in_another_field(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines({"the body": "x", "text": "no"}))
    write_parquet(tmp_path / "b.parquet", ["y"], name="the body")
    assert texts(tmp_path, "the body") == ["x", "y"]


def test_a_folder_is_walked_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("z.txt", "B.txt", "a/2.txt", "a/10.txt", "b/x.txt", ".hidden/x.txt", "a/.hidden.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert texts(tmp_path) == ["B.txt", "z.txt", "a/10.txt", "a/2.txt", "b/x.txt"]
    assert [d.source for d in documents(tmp_path)] == texts(tmp_path)


def test_what_is_skipped_is_named_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = gzip.compress(lines(*({"text": f"{i}" * 99} for i in range(500))))
    files = {
        "good.txt": b"good",
        "empty.txt": b" \n",
        "latin.txt": b"caf\xe9",
        "pointer.txt": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
        "image.png": b"png",
        "lines.jsonl": b'{"text": "kept"}\n{"text": \n{"body": "x"}\n{"text": 5}\n[1]\n{"text": ""}\n{"text": "\xff"}',
        "torn.jsonl.gz": whole[: len(whole) // 2],
        "page.parquet": b"<html>",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    write_parquet(tmp_path / "other.parquet", ["x"], name="body")
    write_parquet(tmp_path / "numbers.parquet", [1, 2])
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    folder = Folder(tmp_path, "text", "given")
    count = folder.documents
    told = [message.removeprefix("given: skipped ") for message in caplog.messages]
    for expected in (
        "empty.txt: empty",
        "latin.txt: not UTF-8 (at byte 3)",
        "pointer.txt: damaged (a Git LFS pointer",
        "image.png: an ending that is not read",
        "lines.jsonl line 2: broken JSON",
        "lines.jsonl line 3: no text in field 'text' (Object missing required field `text`)",
        "lines.jsonl line 4: no text in field 'text' (Expected `str`, got `int`",
        "lines.jsonl line 5: no text in field 'text' (Expected `object`, got `array`)",
        "lines.jsonl line 6: empty",
        "lines.jsonl line 7: broken JSON",
        "torn.jsonl.gz: damaged (damaged or not complete",
        "page.parquet: damaged (an HTML or XML page",
        "other.parquet: no column 'text' (it has n, body)",
        "numbers.parquet: column 'text' is no text (it is int64)",
        "link: link to a folder",
    ):
        assert len([line for line in told if line.startswith(expected)]) == 1, expected
    kept = [d for d in folder.read() if d.source != "torn.jsonl.gz"]
    assert [(d.source, d.row) for d in kept] == [("good.txt", 0), ("lines.jsonl", 0)]
    torn = count - len(kept)
    assert 0 < torn < 500
    assert f"the {torn:,} documents before are kept" in caplog.text


def test_many_skipped_files_do_not_print_many_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("x")
    for i in range(300):
        (tmp_path / f"{i}.png").touch()
    for i in range(5):
        (tmp_path / f"{i}.txt").touch()
    with caplog.at_level(logging.WARNING):
        assert Folder(tmp_path, "text", "given").documents == 1
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "given: skipped 305 in all: 300 an ending that is not read, 5 empty"


def test_reading_again_says_nothing_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.png").touch()
    folder = Folder(tmp_path, "text", "given")
    assert folder.documents == 1
    caplog.clear()
    assert len(list(folder.read())) == 1
    assert not caplog.messages


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b"caf\xe9", "not UTF-8 (at byte 3)"),
        ("a.txt", b"", "all of it was skipped: 1 empty; first a.txt: empty"),
        ("a.jsonl", b'{"body": "x"}\n', "1 no text in field 'text'; first a.jsonl line 1"),
        ("a.jsonl", b"", "it is empty"),
        ("a.jsonl.gz", b"\x1f\x8b", "damaged (damaged or not complete"),
        ("a.parquet", b"PAR1 and no more", "damaged (damaged or not complete"),
        ("a.docx", b"x", "it is no file of a kind that is read"),
    ],
)
def test_a_file_given_by_itself_must_be_readable(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        _ = Folder(tmp_path / name, "text", "given").documents
    told = str(caught.value).splitlines()
    assert told[0] == "Cannot read the corpus given."
    assert why in told[1]
    assert told[2].startswith("Do: give ")


def test_a_torn_file_given_by_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines({"text": "x"}))[:-4])
    with pytest.raises(UserError, match="damaged"):
        _ = Folder(tmp_path / "a.jsonl.gz", "text", "given").documents


def test_a_folder_without_any_text_says_what_was_found(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it is empty"):
        _ = Folder(tmp_path, "text", "given").documents
    (tmp_path / "a.pdf").touch()
    (tmp_path / "b.txt").touch()
    with pytest.raises(UserError) as caught:
        _ = Folder(tmp_path, "text", "given").documents
    assert (
        "all of it was skipped: 1 an ending that is not read, 1 empty; first a.pdf: an ending that is not read"
        in str(caught.value)
    )
    assert ".txt, .jsonl, .jsonl.gz, .parquet" in str(caught.value)


def test_an_absent_path_says_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    with pytest.raises(UserError, match="beside it there are texts"):
        Folder(tmp_path / "text", "text", "given")


def test_a_choice_is_seeded_spread_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(*({"text": str(i)} for i in range(1000))))
    folder = Folder(tmp_path, "text", "given")
    chosen = [d.row for d in folder.choose(100, 0)]
    assert chosen == [d.row for d in folder.choose(100, 0)]
    assert chosen != [d.row for d in folder.choose(100, 1)]
    assert len(set(chosen)) == 100
    assert chosen == sorted(chosen)
    assert 350 < sum(chosen) / 100 < 650  # a uniform choice misses this about once in a million
    assert [d.row for d in folder.choose(2000, 0)] == list(range(1000))


def test_the_version_follows_names_sizes_and_times(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x")
    seen = [Folder(tmp_path, "text", "given").version]
    file.write_text("xy")
    seen.append(Folder(tmp_path, "text", "given").version)
    file.rename(tmp_path / "b.txt")
    seen.append(Folder(tmp_path, "text", "given").version)
    (tmp_path / "c.png").touch()  # not read, so no other corpus
    assert Folder(tmp_path, "text", "given").version == seen[-1]
    assert len(set(seen)) == 3


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str) -> None:
    content = "".join(chr(97 + i * i % 26) for i in range(4000))
    rows = [f"{i} {content}" for i in range(5_000)]  # 20 MB
    path = tmp_path / f"a.{ending}"
    match ending:
        case "parquet":
            write_parquet(path, rows)
        case "jsonl":
            path.write_bytes(lines(*({"text": row} for row in rows)))
        case _:
            path.write_bytes(gzip.compress(lines(*({"text": row} for row in rows)), 1))
    del rows
    usual = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(usual)
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        assert sum(1 for _ in Folder(path, "text", "given").read()) == 5_000
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
        assert pool.max_memory() < 12_000_000
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(usual)
