"""`corpus build` and `corpus show` as typed."""

import gzip
import json
from pathlib import Path

import pytest

from neuroscope_jax import cli
from neuroscope_jax.corpus import commands, hub, mix


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of each test's own, and a stand-in for the bundled corpus."""
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mix, "DEMO_FOLDER", tmp_path)
    monkeypatch.setitem(cli.COMMANDS, "corpus", {"build": commands.build, "show": commands.show})  # type: ignore[arg-type]
    lines = b"".join(json.dumps({"text": f"chat {i}"}).encode() + b"\n" for i in range(30))
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "mine.toml").write_text('[[corpus]]\npath = "demo"\n')
    return tmp_path


def test_nothing_cached_says_what_to_do(capsys: pytest.CaptureFixture[str], places: Path) -> None:
    assert cli.run(["corpus", "show"]) == 0
    told = capsys.readouterr().out
    assert f"There is no corpus in {places / 'cache' / 'corpus'} yet" in told
    assert "corpus build" in told
    assert cli.run(["corpus", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_build_then_show(capsys: pytest.CaptureFixture[str], places: Path) -> None:
    build = ["corpus", "build", "--config", str(places / "mine.toml"), "--samples"]
    assert cli.run([*build, "20"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].startswith("20 documents, ")
    assert first[0].endswith(" characters from demo")
    assert cli.run([*build, "20"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == first[0] + " (there already)"
    assert cli.run([*build, "500"]) == 0
    assert "Fewer than the 500 asked for: there are no more." in capsys.readouterr().out
    assert cli.run(["corpus", "show", "--json"]) == 0
    rows = sorted(json.loads(capsys.readouterr().out), key=lambda row: row["documents"])
    assert [(row["documents"], row["whole"], row["name"]) for row in rows] == [(20, False, "demo"), (30, True, "demo")]
    for row in rows:
        assert row["bytes"] == sum(path.stat().st_size for path in Path(row["folder"]).iterdir())
        assert row["sources"][0]["documents"] == row["documents"]
    assert cli.run(["corpus", "show", "--config", "demo", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert cli.run(["corpus", "show", "--config", "gemma-2-2b-it", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert cli.run(["corpus", "show"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[2].split() == ["corpus", "documents", "characters", "MB", "made", "sha256", "sources"]
    for row in rows:
        assert any(row["sha256"][:12] in line and f"{row['documents']} of demo" in line for line in table[3:])


def test_show_tells_a_damaged_corpus(capsys: pytest.CaptureFixture[str], places: Path) -> None:
    assert cli.run(["corpus", "build", "--config", str(places / "mine.toml"), "--samples", "5"]) == 0
    (path,) = (places / "cache").rglob("documents.jsonl.gz")
    path.write_bytes(b"x")
    capsys.readouterr()
    assert cli.run(["corpus", "show"]) == 0
    assert f"{path}: damaged" in capsys.readouterr().out
    assert cli.run(["corpus", "show", "--json"]) == 0
    assert "damaged" in json.loads(capsys.readouterr().out)[0]


@pytest.mark.parametrize(
    ("argv", "status", "told"),
    [
        (["--samples", "0"], 2, "--samples 0: expected 1 or more"),
        (["--split", "test"], 2, "--split test: belongs to a dataset; name it with --dataset"),
        (["--text-field", "body"], 2, "--text-field body: belongs to a dataset"),
        (["--config", "nope"], 1, "--config nope: no such preset; there are demo, "),
    ],
)
def test_mistyped_lines(capsys: pytest.CaptureFixture[str], argv: list[str], status: int, told: str) -> None:
    assert cli.run(["corpus", "build", *argv]) == status
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--dataset", "wikitext", "--config", "wikitext-103-raw-v1"], ("wikitext-103-raw-v1", "train", "text")),
        (["--dataset", "wikitext"], ("wikitext-103-raw-v1", "train", "text")),
        (["--dataset", "Salesforce/wikitext", "--config", "demo", "--split", "test"], ("demo", "test", "text")),
        (["--dataset", "wikitext", "--text-field", "t"], ("wikitext-103-raw-v1", "train", "t")),
        ([], ("wikitext-103-raw-v1", "train", "text")),
    ],
)
def test_config_is_the_datasets_own_where_a_dataset_is_named(
    argv: list[str], expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fetch(source: object, whole: bool = False) -> None:
        asked.append(source)
        raise hub.refusal("Salesforce/wikitext", "the test ends here", "nothing")

    monkeypatch.setattr(hub, "fetch", fetch)
    assert cli.run(["corpus", "build", *argv]) == 1
    (source,) = asked
    assert source.dataset == "Salesforce/wikitext"
    assert (source.config, source.split, source.text_field) == expected


def test_a_dataset_that_no_config_names_is_told_how_to_be_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    rows = datasets.Dataset.from_dict({"body": ["one", "two"]})
    monkeypatch.setattr(hub, "fetch", lambda source, whole=False: (rows, None))
    assert cli.run(["corpus", "build", "--dataset", "owner/rows", "--text-field", "body"]) == 0
    assert capsys.readouterr().out.endswith('[[corpus]]\ndataset = "owner/rows"\ntext_field = "body"\n')
