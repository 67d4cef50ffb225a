"""Labels of Neuronpedia's export: all batches, one label a feature, refusals, and nothing half written."""

import dataclasses
import gzip
import hashlib
import itertools
import json
import socket
import tracemalloc

import numpy as np
import pytest

from neuroscope_jax import cli
from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.errors import UserError
from neuroscope_jax.features import bucket, neuronpedia
from neuroscope_jax.features.label_details import details_path, read_details
from neuroscope_jax.features.labels import labels_path, load_labels
from neuroscope_jax.features.neuronpedia import Found, Record
from neuroscope_jax.features.width import width_named, width_of
from tests.features.bucket_stand_in import (
    HTML,
    LISTING,
    PREFIX,
    batch,
    broken_off,
    instead,
    ok,
    record,
    running,
    status,
)

CONFIG = NeuroscopeConfig()
WIDTH = 16384


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(bucket, "PAUSES", (0.0, 0.0))
    with running() as server:
        monkeypatch.setenv(neuronpedia.DATASETS_VARIABLE, server.address)
        yield server


def labels(details):
    return {index: detail.label for index, detail in details.features.items()}


def test_all_batches_over_all_pages(stand_in):
    # Eleven, so that their order by name is not that by number; features spread over them.
    stand_in.put(*(batch(record(n, f"label {n}"), record(16383 - n, f"label -{n}")) for n in range(11)))
    stand_in.files[f"{PREFIX}config.json"] = b"{}"
    stand_in.files["v1/gemma-2-2b/20-gemmascope-res-16k__l0-8/explanations/batch-0.jsonl.gz"] = b"of another"
    stand_in.page_size = 4
    found = neuronpedia.fetch(CONFIG, WIDTH)
    assert labels(found) == {n: f"label {n}" for n in range(11)} | {16383 - n: f"label -{n}" for n in range(11)}
    assert sum("list-type=2" in path for path in stand_in.asked) == 3


def test_provenance(stand_in):
    stand_in.put(batch(record(1, "one"), record(2, "")), batch(record(1, "uno")))
    found = neuronpedia.fetch(CONFIG, WIDTH)
    assert (found.source, found.width, found.pair) == ("neuronpedia", WIDTH, None)
    assert found.download.address == f"{stand_in.address}/{PREFIX}"
    assert found.download.batches == {
        f"batch-{n}.jsonl.gz": hashlib.md5(stand_in.files[f"{PREFIX}batch-{n}.jsonl.gz"]).hexdigest() for n in range(2)
    }
    assert found.download.records == 3
    detail = found.features[1]
    assert (detail.model, detail.type_name) == ("gemini-2.5-flash-lite", "np_acts-logits-general")
    assert detail.alternatives == 1
    assert 2 not in found.features, "a blank label is none"


def test_a_file_of_several_gzip_members_and_blank_lines(stand_in):
    stand_in.put(batch(record(1, "one")) + gzip.compress(b"\n\n") + batch(record(2, " two\nlines ")))
    assert labels(neuronpedia.fetch(CONFIG, WIDTH)) == {1: "one", 2: "two lines"}


def test_an_index_that_is_a_number(stand_in):
    stand_in.put(batch(record(0, "x") | {"index": 7}))
    assert labels(neuronpedia.fetch(CONFIG, WIDTH)) == {7: "x"}


def test_old_records_with_an_embedding_in_a_string(stand_in):
    stand_in.put(batch(record(1, "one", embedding=json.dumps([0.5] * 256), createdAt="2024-07-01T00:00:00Z")))
    assert neuronpedia.fetch(CONFIG, WIDTH).features[1].date == "2024-07-01T00:00:00Z"


def test_embeddings_are_not_kept(stand_in):
    line = json.dumps(record("INDEX", "x", embedding=[1 / 3] * 4096)) + "\n"
    stand_in.put(
        *(gzip.compress("".join(line.replace("INDEX", str(n)) for n in range(100)).encode()) for _ in range(2))
    )
    tracemalloc.start()
    try:
        neuronpedia.fetch(CONFIG, WIDTH)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 * len(line) / 4


def of(text, method=None, model=None, date=None):
    return Record("m", "l", "1", text, method, model, date)


# In falling order.
RANKED = [
    of("a", "np_acts-logits-general", "gemini-2.0-flash", "2026-01-01"),
    of("b", "np_acts-logits-general", "gemini-2.5-flash-lite"),
    of("c", "np_acts-logits-general", "gemini-2.0-flash"),
    of("d", "np_max-act-logits", "gpt-4o-mini", "2027-01-01"),
    of("e", "oai_token-act-pair", "gpt-4o-mini", "2027-01-01"),
    of("z", "oai_token-act-pair", "gpt-4o-mini"),
    of("f", "oai_token-act-pair", "gpt-4o-mini"),
    of("g", "eleuther_acts_top20", "claude-3-5-sonnet"),
    of("h", None, None, "2028-01-01"),
]


@pytest.mark.parametrize(
    "pair", list(itertools.combinations(RANKED, 2)), ids=lambda p: p[0].description + p[1].description
)
def test_of_several_labels_one_is_chosen_whatever_their_order(pair):
    for records in (pair, pair[::-1]):
        found = Found()
        for one in records:
            found.add(1, one)
        assert found.best[1] is pair[0]
        assert found.candidates[1] == 2


def test_reasoning_in_the_place_of_a_label_is_none(stand_in):
    leaked = "thoughtThe user wants me to explain the behaviour of a neuron " * 5
    stand_in.put(batch(record(1, leaked, createdAt="2030-01-01"), record(1, "short"), record(2, leaked)))
    assert labels(neuronpedia.fetch(CONFIG, WIDTH)) == {1: "short"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            record(1, "x", modelId="gemma-2-9b"),
            "a label of gemma-2-9b/20-gemmascope-res-16k, expected one of gemma-2-2b",
        ),
        (record(1, "x", layer="21-gemmascope-res-16k"), "a label of gemma-2-2b/21-gemmascope-res-16k"),
        (record(WIDTH, "x"), "a label of feature 16384, but this SAE has 16384 features"),
        (record("-1", "x"), "index is '-1'"),
        (record("1.0", "x"), "index is '1.0'"),
        (record(1, "x") | {"index": 1.5}, "`$.index`"),
        (record(1, 7), "description"),
        ([], "Expected `object`"),
    ],
)
def test_records_of_another_sae_are_refused(stand_in, line, said):
    stand_in.put(batch(record(0, "good")), batch(record(1, "good"), line))
    with pytest.raises(UserError) as caught:
        neuronpedia.fetch(CONFIG, WIDTH)
    assert said in str(caught.value)
    assert "batch-1.jsonl.gz, line 2: " in str(caught.value)


BATCH = f"{PREFIX}batch-1.jsonl.gz"
FAILURES = {
    "listing 404": (LISTING, status(404), "HTTP 404"),
    "listing 403": (LISTING, status(403), "HTTP 403"),
    "listing HTML": (LISTING, instead(HTML), "no listing of a bucket"),
    "listing other XML": (LISTING, instead(b"<Error/>"), "no listing of a bucket"),
    "listing empty": (LISTING, instead(b"<ListBucketResult/>"), "there are none under"),
    "listing endless": (
        LISTING,
        instead(
            b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
            b"</ListBucketResult>"
        ),
        "it goes on, but not where",
    ),
    "batch 404": (BATCH, status(404), "HTTP 404"),
    "batch 503": (BATCH, status(503), "HTTP 503"),
    "batch HTML": (BATCH, instead(HTML), "an HTML or XML page"),
    "batch short": (BATCH, lambda handler, body: handler.send(200, body[:-9]), "bytes came"),
    "batch broken off": (BATCH, broken_off, "broken one"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("earlier", [False, True])
def test_a_failure_is_told_in_three_lines_and_writes_nothing(stand_in, capsys, failure, earlier):
    stand_in.put(batch(record(0, "old")))
    if earlier:
        assert cli.run(["labels", "pull"]) == 0
        capsys.readouterr()
    stand_in.put(batch(record(0, "new")), batch(record(1, "new")))
    key, fault, said = FAILURES[failure]
    stand_in.faults[key] = [fault]
    before = kept()
    assert cli.run(["labels", "pull", "--refresh", "--log-level=error"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert [line.partition(" ")[0] for line in err.splitlines()] == ["Cannot", "Why:", "Do:"]
    assert kept() == before
    assert bool(before) is earlier


def kept():
    folder = labels_path(CONFIG, "neuronpedia").parent
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


@pytest.mark.parametrize("content", [b"", batch(record(1, "x"))[:-9], b"{}\n", batch(record(1, "x")) + b"trailing"])
def test_files_damaged_in_the_bucket_itself(stand_in, content):
    stand_in.put(content)
    with pytest.raises(UserError, match=r"batch-0\.jsonl\.gz(.|\n)*expected gzip"):
        neuronpedia.fetch(CONFIG, WIDTH)


@pytest.mark.parametrize("fault", [status(503), status(429), broken_off])
def test_a_passing_failure_passes(stand_in, fault):
    stand_in.put(batch(record(0, "a")), batch(record(1, "b")))
    stand_in.faults[BATCH] = [fault, fault, ok]
    assert labels(neuronpedia.fetch(CONFIG, WIDTH)) == {0: "a", 1: "b"}


def test_what_is_not_there_is_asked_for_once(stand_in):
    stand_in.put(batch(record(0, "a")), batch(record(1, "b")))
    stand_in.faults[BATCH] = [status(404)]
    with pytest.raises(UserError):
        neuronpedia.fetch(CONFIG, WIDTH)
    assert sum(path.endswith("batch-1.jsonl.gz") for path in stand_in.asked) == 1


def test_no_network(stand_in, monkeypatch):
    with socket.socket() as closed:  # bound, not listening
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv(neuronpedia.DATASETS_VARIABLE, f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(UserError, match="no connection"):
            neuronpedia.fetch(CONFIG, WIDTH)


def test_an_address_that_is_none(stand_in, monkeypatch):
    monkeypatch.setenv(neuronpedia.DATASETS_VARIABLE, "bucket.example")
    with pytest.raises(UserError, match=r"'bucket\.example' is no address"):
        neuronpedia.fetch(CONFIG, WIDTH)


def test_a_proxy_is_used(stand_in, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", stand_in.address)
    monkeypatch.setenv(neuronpedia.DATASETS_VARIABLE, "http://bucket.example")
    stand_in.put(batch(record(0, "a")))
    assert labels(neuronpedia.fetch(CONFIG, WIDTH)) == {0: "a"}
    assert all(path.startswith("http://bucket.example/") for path in stand_in.asked)


def test_pulled_once_they_stay(stand_in, capsys):
    stand_in.put(batch(record(4521, "greeting or salutation")))
    assert cli.run(["labels", "pull"]) == 0
    assert "labels of 1 of 16,384 features" in capsys.readouterr().out
    assert load_labels(CONFIG, WIDTH).text(4521) == "greeting or salutation"

    asked = len(stand_in.asked)
    stand_in.put(batch(record(4521, "newer")))
    assert cli.run(["labels", "pull"]) == 0
    out = capsys.readouterr().out
    assert "here already" in out
    assert f"from {stand_in.address}/{PREFIX}" in out
    assert len(stand_in.asked) == asked, "no network the second time"
    assert load_labels(CONFIG, WIDTH).text(4521) == "greeting or salutation"

    assert cli.run(["labels", "pull", "--refresh"]) == 0
    assert load_labels(CONFIG, WIDTH).text(4521) == "newer"
    path = labels_path(CONFIG, "neuronpedia")
    assert read_details(details_path(path)).features[4521].label == "newer"
    assert json.loads(path.read_text()) == {"4521": "newer"}


def test_labels_that_somebody_put_there_are_not_replaced_unasked(stand_in, capsys):
    path = labels_path(CONFIG, "neuronpedia")
    path.parent.mkdir(parents=True)
    path.write_text('{"1": "mine"}')
    assert cli.run(["labels", "pull"]) == 0
    assert "origin unknown" in capsys.readouterr().out
    assert stand_in.asked == []


@pytest.mark.parametrize(
    ("sae_id", "width"),
    [
        ("20-gemmascope-res-16k", 16384),
        ("20-gemmascope-res-65k", 65536),
        ("20-gemmascope-res-131k", 131072),
        ("9-gemmascope-res-262k", 262144),
        ("20-gemmascope-res-1m", 1048576),
        ("20-gemmascope-res-16k__l0-8", 16384),
        ("x-128k", 131072),
        ("layer_20-width_16k-average_l0_22", 16384),
        ("google-gemma-scope-2b-pt-res", None),
        ("6-res-jb", None),
        ("x-0k", None),
    ],
)
def test_width_from_the_name(sae_id, width):
    assert width_named(sae_id) == width


def test_width_from_the_file(tmp_path):
    path = tmp_path / "sae.npz"
    np.savez(path, b_enc=np.zeros(24))
    config = dataclasses.replace(CONFIG, sae_local_path=str(path), neuronpedia_sae_id="6-res-jb")
    assert width_of(config) == 24
    with pytest.raises(UserError, match=r"has 24 features, but .*20-gemmascope-res-16k, which has 16384"):
        width_of(dataclasses.replace(config, neuronpedia_sae_id="20-gemmascope-res-16k"))
    path.write_bytes(HTML)
    with pytest.raises(UserError, match="an HTML or XML page"):
        width_of(config)


def test_width_unknown():
    config = dataclasses.replace(CONFIG, sae_repo="no/such", neuronpedia_sae_id="6-res-jb")
    with pytest.raises(UserError, match="sae pull"):
        width_of(config)


def test_pages_of_published_pairs_only():
    base = "https://www.neuronpedia.org/gemma-2-2b"
    assert neuronpedia.page(CONFIG, 12082) == f"{base}/20-gemmascope-res-16k/12082"
    other = dataclasses.replace(CONFIG, neuronpedia_sae_id="3-gemmascope-res-16k")
    assert neuronpedia.page(other, 0) == f"{base}/3-gemmascope-res-16k/0"
    nine = load_preset("gemma-2-9b-it")
    assert neuronpedia.page(nine, 1) == "https://www.neuronpedia.org/gemma-2-9b-it/20-gemmascope-res-16k/1"
    assert neuronpedia.page(load_preset("demo"), 1) is None
    assert neuronpedia.page(dataclasses.replace(CONFIG, neuronpedia_sae_id="26-gemmascope-res-16k"), 1) is None
    assert neuronpedia.page(dataclasses.replace(CONFIG, neuronpedia_model_id="mine"), 1) is None


def test_the_demos_labels_are_bundled(stand_in, capsys, monkeypatch):
    monkeypatch.setattr(neuronpedia, "fetch", pytest.fail)
    assert cli.run(["labels", "pull", "--config", "demo"]) == 0
    said, error = capsys.readouterr()
    assert said.startswith("The demo's labels are bundled with it; Neuronpedia has none of this pair")
    assert error == ""
    assert not labels_path(load_preset("demo"), "neuronpedia").exists()
