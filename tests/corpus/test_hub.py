"""Datasets of the hub: fetched over HTTP from a stand-in, and every refusal in three lines."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from neuroscope_jax.corpus.hub import dataset_id
from tests.corpus.dataset_hub import COMMIT, Handler

TOKEN = "hf_a-secret-that-must-not-be-shown"
WIKITEXT = {"dataset": "wikitext", "config": "wikitext-103-raw-v1"}
BUILD = """
import json, sys
from neuroscope_jax.config import CorpusSource
from neuroscope_jax.corpus.build import build
from neuroscope_jax.errors import UserError
for request in json.loads(sys.argv[1]):
    many = request.pop("many", 1000)
    try:
        kept = build((CorpusSource(**request),), many)
        documents = [[d.text, d.source, d.row] for d in kept.read()]
        part, whole = kept.manifest.parts[0], kept.manifest.whole
        print(json.dumps({"documents": documents, "whole": whole, "version": part.version, "error": None}))
    except UserError as error:
        print(json.dumps({"documents": None, "error": str(error)}))
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def ask(home: Path, *requests: dict[str, object], **environment: str) -> list[dict[str, Any]]:
    """Build the corpora asked for in a process of its own, since the libraries read their environment on import.

    Warnings are errors there too, and nothing but the answers may be written.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BUILD, json.dumps(requests)],
        env={"HF_HOME": str(home), "NEUROSCOPE_CACHE": str(home / "own"), "NO_PROXY": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "examples/s" not in done.stderr  # a progress bar
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_datasets_are_fetched_and_kept_for_the_next_time(endpoint: str, tmp_path: Path) -> None:
    requests: tuple[dict[str, object], ...] = (WIKITEXT, {**WIKITEXT, "many": 10}, {**WIKITEXT, "split": "test"})
    found = ask(tmp_path, *requests, {"dataset": "owner/rows"}, HF_ENDPOINT=endpoint)
    everything, some, test, rows = found
    assert [answer["version"] for answer in found] == [COMMIT] * 4
    name = "Salesforce/wikitext wikitext-103-raw-v1 train"
    assert sorted(everything["documents"], key=lambda d: d[2]) == [
        [f"= Title {i} =\n1,{i:03}", name, 4 * i + 1] for i in range(40)
    ]
    assert everything["whole"]
    assert some["documents"] == everything["documents"][:10]  # the same choice, longer
    assert test["documents"] == [["= Title 900 =\n1,900", "Salesforce/wikitext wikitext-103-raw-v1 test", 1]]
    assert {text: row for text, _, row in rows["documents"]} == {f"row {i}": i for i in range(30) if i % 3}
    offline = ask(tmp_path, {**WIKITEXT, "many": 10}, HF_HUB_OFFLINE="1", NEUROSCOPE_CACHE=str(tmp_path / "new"))
    assert offline[0]["documents"] == some["documents"]


def test_a_dataset_of_unknown_size_is_streamed_from_all_of_its_shards(endpoint: str, tmp_path: Path) -> None:
    some, everything = ask(
        tmp_path, {"dataset": "owner/large", "many": 8}, {"dataset": "owner/large"}, HF_ENDPOINT=endpoint
    )
    for text, source, row in everything["documents"]:
        shard = text.partition(" ")[0]
        assert (text, source) == (f"{shard} row {row}", f"owner/large train shard {shard}")
    assert len(everything["documents"]) == 24
    assert everything["whole"]
    assert sorted(Counter(source for _, source, _ in some["documents"]).values()) == [2, 3, 3]
    assert not some["whole"]


def test_refusals_in_three_lines(endpoint: str, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, object], str, str]] = [
        ({"dataset": "owner/absent"}, "no such repository, or it is private", "check the name"),
        ({"dataset": "not an id"}, "neither an existing folder nor a hub id", "check the name"),
        ({"dataset": "owner/gated"}, "no token was given (401)", "accept the terms at"),
        (
            {**WIKITEXT, "config": "wikitext-9"},
            "no configuration wikitext-9; there are wikitext-103-raw-v1,",
            "--config",
        ),
        ({"dataset": "wikitext"}, "more than one configuration; there are wikitext-103-raw-v1,", "--config"),
        ({**WIKITEXT, "split": "validation"}, "no split validation; there are test, train", "--split"),
        ({**WIKITEXT, "split": "train[:x%]"}, "could not be fetched or read (ValueError", "choose another"),
        ({"dataset": "owner/rows", "text_field": "body"}, "no column body; there are text (string)", "--text-field"),
        ({"dataset": "owner/numbers", "text_field": "n"}, "no text in column n; there are n (int64)", "--text-field"),
        ({"dataset": "owner/broken"}, "could not be fetched or read (ArrowInvalid", "choose another"),
        ({"dataset": "owner/torn"}, "could not be fetched or read (ArrowInvalid", "choose another"),
        ({"dataset": "owner/empty"}, "holds no files that are read as data", "choose another"),
    ]
    answers = ask(tmp_path, *(request for request, _, _ in cases), HF_ENDPOINT=endpoint)
    for (request, why, do), answer in zip(cases, answers, strict=True):
        told = (answer["error"] or "").splitlines()
        assert len(told) == 3, (request, answer)
        assert dataset_id(str(request["dataset"])) in told[0]
        assert why in told[1]
        assert do in told[2]
        assert "--corpus-path" in told[2]


def test_a_token_without_access_is_told_and_not_shown(endpoint: str, tmp_path: Path) -> None:
    (answer,) = ask(tmp_path, {"dataset": "owner/gated"}, HF_ENDPOINT=endpoint, HF_TOKEN=TOKEN)
    assert "has not been granted access (403)" in answer["error"]
    assert TOKEN not in answer["error"]


def test_without_any_network(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        dead = f"http://127.0.0.1:{closed.server_port}"
    (answer,) = ask(tmp_path, WIKITEXT, HF_ENDPOINT=dead)
    told = answer["error"].splitlines()
    assert told[1].startswith(f"Why: no connection to {dead} (")
    assert "HF_HUB_OFFLINE=1" in told[2]
    assert "--corpus-path" in told[2]


def test_offline_without_a_copy(tmp_path: Path) -> None:
    (answer,) = ask(tmp_path, WIKITEXT, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set, and this dataset was not fetched on this machine before" in answer["error"]
