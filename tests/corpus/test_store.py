"""The cache of corpora: found again, never half there, damage noticed, and what open_corpus makes of it."""

import dataclasses
import gzip
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neuroscope_jax.config import CorpusSource, NeuroscopeConfig
from neuroscope_jax.corpus import mix, store
from neuroscope_jax.corpus.build import build
from neuroscope_jax.corpus.documents import Document, open_corpus
from neuroscope_jax.errors import UserError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of each test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(folder))
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A file of 50 documents."""
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": f"text number {i}"}) + "\n" for i in range(50)))
    return path


@pytest.fixture
def sources(texts: Path) -> tuple[CorpusSource, ...]:
    return (CorpusSource(path=str(texts)),)


def digest_of(found: list[str]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(text.encode()).digest() for text in found)).hexdigest()


def test_what_is_stored_is_what_is_read(sources: tuple[CorpusSource, ...], texts: Path, cache: Path) -> None:
    kept = build(sources, 20)
    documents = list(kept.read())
    assert [d.text for d in documents] == [f"text number {d.row}" for d in documents]
    assert {d.source for d in documents} == {"texts.jsonl"}
    assert len({d.row for d in documents}) == 20
    manifest = kept.manifest
    assert (manifest.documents, manifest.asked, manifest.whole) == (20, 20, False)
    assert manifest.characters == sum(len(d.text) for d in documents)
    assert manifest.sha256 == digest_of([d.text for d in documents])
    assert manifest.origins.sha256 == [hashlib.sha256(d.text.encode()).hexdigest()[:16] for d in documents]
    assert [(p.asked, p.documents, p.available) for p in manifest.parts] == [(sources[0], 20, 50)]
    assert {p.name for p in cache.rglob("*")} == {"corpus", kept.folder.name, "documents.jsonl.gz", "manifest.json"}
    lines = gzip.decompress((kept.folder / "documents.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line) for line in lines] == [{"text": d.text} for d in documents]


def test_the_smallest_that_suffices_is_found(sources: tuple[CorpusSource, ...]) -> None:
    assert store.find(sources, 5) is None
    small, large = build(sources, 10), build(sources, 20)
    assert small.folder != large.folder
    for many, expected in ((5, small), (10, small), (11, large)):
        found = store.find(sources, many)
        assert found is not None
        assert found.folder == expected.folder
    assert store.find(sources, 21) is None
    everything = build(sources, 60)
    assert everything.manifest.whole
    found = store.find(sources, 1000)
    assert found is not None
    assert found.folder == everything.folder


def test_other_sources_are_another_corpus(sources: tuple[CorpusSource, ...], texts: Path) -> None:
    build(sources, 10)
    assert store.find((dataclasses.replace(sources[0], weight=7.0),), 10)  # one source has all of the weight
    assert store.find((dataclasses.replace(sources[0], text_field="body"),), 10) is None
    assert store.find((sources[0], dataclasses.replace(sources[0], weight=2.0)), 10) is None
    with texts.open("a") as file:
        file.write('{"text": "one more"}\n')
    assert store.find(sources, 10) is None


def test_the_same_sources_give_the_same_files(
    sources: tuple[CorpusSource, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build(sources, 20)
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(first.folder / "elsewhere"))
    second = build(sources, 20)
    assert second.folder.name == first.folder.name
    assert (second.folder / store.TEXTS).read_bytes() == (first.folder / store.TEXTS).read_bytes()


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "manifest", "columns"])
def test_a_damaged_corpus_is_named_and_made_again(
    sources: tuple[CorpusSource, ...], caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    kept = build(sources, 20)
    path = kept.folder / ("manifest.json" if damage in ("manifest", "columns") else "documents.jsonl.gz")
    content = bytearray(path.read_bytes())
    match damage:
        case "flip":
            content[len(content) // 2] ^= 1
        case "columns":
            content[:] = content.replace(b'"row":[', b'"row":[1,')
        case _:
            del content[len(content) // 2 :]
    path.write_bytes(content)
    if damage == "gone":
        path.unlink()
    config = NeuroscopeConfig(corpus=sources)
    corpus = open_corpus(config, None, 20)
    assert str(path) in caplog.text
    assert corpus.sha256 == kept.manifest.sha256
    caplog.clear()
    assert len(list(open_corpus(config, None, 20))) == 20
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_damage_that_comes_later_ends_the_reading(sources: tuple[CorpusSource, ...]) -> None:
    corpus = open_corpus(NeuroscopeConfig(corpus=sources), None, 20)
    (path,) = store.corpus_folder().glob("*/documents.jsonl.gz")
    path.write_bytes(gzip.compress(b"".join(gzip.decompress(path.read_bytes()).splitlines(keepends=True)[:-1])))
    with pytest.raises(UserError, match="damaged while it was read"):
        list(corpus)


def in_a_process(code: str, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code that has `sources` and `build`."""
    start = """
import os, resource, signal, sys
from neuroscope_jax.corpus import build as building
from neuroscope_jax.config import CorpusSource
from neuroscope_jax.corpus.build import build
from neuroscope_jax.errors import UserError
sources = (CorpusSource(path=sys.argv[1]),)
"""
    return subprocess.run(
        [sys.executable, "-c", start + code, *arguments],
        env={**os.environ, "NEUROSCOPE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_killed_build_leaves_nothing_but_what_the_next_one_removes(
    sources: tuple[CorpusSource, ...], texts: Path, cache: Path
) -> None:
    earlier = build(sources, 10)
    code = """
add = building._Tally.add
def killed(self, source, document):
    add(self, source, document)
    if len(self.origins.row) == 15:
        os.kill(os.getpid(), signal.SIGKILL)
building._Tally.add = killed
build(sources, 20)
"""
    assert in_a_process(code, cache, str(texts)).returncode == -signal.SIGKILL
    (left,) = earlier.folder.parent.glob(".*")
    assert store.find(sources, 20) is None
    earlier.check()
    assert [folder for folder, _ in store.stored()] == [earlier.folder]
    build(sources, 20)
    assert left.exists()  # another process may still be writing it
    for path in (*left.iterdir(), left):
        os.utime(path, (0, 0))
    build(sources, 30)
    assert not left.exists()


def test_a_full_disk_leaves_earlier_corpora_as_they_were(
    sources: tuple[CorpusSource, ...], texts: Path, cache: Path
) -> None:
    earlier = build(sources, 10)
    code = """
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    build(sources, 40)
except UserError as error:
    sys.exit(str(error))
"""
    done = in_a_process(code, cache, str(texts))
    told = done.stderr.splitlines()
    assert len(told) == 3
    assert f"it cannot be stored in {cache / 'corpus'}: File too large" in told[1]
    assert "NEUROSCOPE_CACHE" in told[2]
    assert [p.name for p in earlier.folder.parent.iterdir()] == [earlier.folder.name]
    earlier.check()


def test_a_corpus_that_another_process_finished_first_is_kept(
    sources: tuple[CorpusSource, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build(sources, 20)
    before = (first.folder / store.MANIFEST).stat().st_ino
    assert build(sources, 20).manifest == first.manifest
    assert (first.folder / store.MANIFEST).stat().st_ino == before


def test_sources_without_any_text_are_refused(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="no text was found in it; it is empty"):
        build((CorpusSource(path=str(tmp_path / "none")),), 5)
    assert not list(cache.rglob("*"))


def test_a_path_is_read_in_place_and_always_the_same(texts: Path, cache: Path) -> None:
    corpus = open_corpus(NeuroscopeConfig(), str(texts), 10)
    assert (corpus.name, corpus.documents) == (str(texts), 50)
    assert corpus.sha256 == digest_of([f"text number {i}" for i in range(50)])
    assert list(corpus) == list(corpus) == [Document(f"text number {i}", "texts.jsonl", i) for i in range(50)]
    assert not list(cache.rglob("*"))


def test_texts_that_change_while_they_are_read_are_noticed(texts: Path) -> None:
    corpus = open_corpus(NeuroscopeConfig(), str(texts), 10)
    texts.write_text(texts.read_text().replace("number 49", "number 50"))
    with pytest.raises(UserError, match="were changed while they were read"):
        list(corpus)


def test_a_config_of_sources_is_built_once(sources: tuple[CorpusSource, ...], caplog: pytest.LogCaptureFixture) -> None:
    config = NeuroscopeConfig(corpus=(sources[0], dataclasses.replace(sources[0], weight=3.0)))
    corpus = open_corpus(config, None, 20)
    assert corpus.documents == 20
    assert corpus.name == f"25% {sources[0].path} + 75% {sources[0].path}"
    with caplog.at_level(logging.INFO):
        again = open_corpus(config, None, 20)
    assert list(again) == list(corpus)
    assert again.sha256 == corpus.sha256


def test_the_bundled_corpus_goes_by_the_name_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mix, "DEMO_FOLDER", tmp_path)
    line = b'{"text": "<start_of_turn>user\\nHello<end_of_turn>\\n"}\n'
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(line))
    corpus = open_corpus(NeuroscopeConfig(corpus=(CorpusSource(path="demo"),)), None, 1000)
    assert corpus.name == "demo"
    assert [d.text for d in corpus] == ["<start_of_turn>user\nHello<end_of_turn>\n"]


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import server.__main__, neuroscope_jax.cli, neuroscope_jax.corpus.documents, neuroscope_jax.corpus.commands"
    code += "; import sys; print([m for m in ('datasets', 'pyarrow', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_what_is_read_does_not_depend_on_what_is_cached(tmp_path, monkeypatch):
    from neuroscope_jax.config import CorpusSource, NeuroscopeConfig
    from neuroscope_jax.corpus.documents import first_of, open_corpus

    texts = tmp_path / "texts"
    texts.mkdir()
    for i in range(40):
        (texts / f"{i:02}.txt").write_text(f"text {i}")
    config = NeuroscopeConfig(corpus=(CorpusSource(path=str(texts)),))
    found = []
    for cache, before in (("empty", []), ("full", [30, 40, 100])):
        monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / cache))
        for many in before:
            open_corpus(config, None, many)
        corpus = open_corpus(config, None, 10)
        found.append((corpus.sha256, corpus.documents, [document.text for document in corpus]))
    assert found[0] == found[1]
    assert len(found[0][2]) == 10
    larger = store.find(config.corpus, 30)
    part = first_of(larger, 7)
    assert [d.text for d in part] == [d.text for d in larger.read()][:7]
    assert part.documents == 7
