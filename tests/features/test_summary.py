"""A calibration in a few figures, against counting by hand, and what `calibrate show` makes of them."""

import dataclasses
import io
import json
import sys

import numpy as np
import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.features import plot
from neuroscope_jax.features.calibration import FeatureStats, cached_stats_path, save_stats
from neuroscope_jax.features.commands import show
from neuroscope_jax.features.labels import Labels
from neuroscope_jax.features.report import as_text
from neuroscope_jax.features.summary import summarise
from tests.features.measured import PAIR, PROVENANCE, TOKENS, WIDTH, activations, measured

LABELS = Labels(PAIR.sae_id, WIDTH, "autointerp", {3: "always on", 5: "line\nbreak \x1b[31m red " + "long " * 40})


@pytest.fixture
def stats() -> FeatureStats:
    return measured(activations())


@pytest.fixture
def saved(tmp_path, stats):
    path = tmp_path / "stats.json"
    save_stats(path, stats, PROVENANCE)
    return path


def summary(stats, top=20, provenance=PROVENANCE, threshold=0.5):
    return summarise(stats, provenance, LABELS, top, threshold)


def with_sae(name):
    return dataclasses.replace(PROVENANCE, pair=dataclasses.replace(PAIR, sae_id=name))


def test_counts(stats):
    firings = [int(np.count_nonzero(column)) for column in activations().T]
    found = summary(stats)
    assert (found.width, found.tokens) == (WIDTH, TOKENS)
    assert found.dead == sum(n == 0 for n in firings) >= 1
    assert found.rare == sum(1 <= n <= 9 for n in firings) >= 2
    assert found.dense == sum(n > 40 for n in firings)
    assert found.above_threshold == sum(n > 200 for n in firings)
    assert found.l0 == pytest.approx(sum(firings) / TOKENS)


def test_each_feature_that_fired_is_in_one_bin(stats):
    found = summary(stats).density
    assert found[-1].most == 0
    assert all(left.most == right.least for left, right in zip(found[:-1], found[1:], strict=True))
    for bin_ in found:
        last = bin_.most == 0
        rates = [n / TOKENS for n in stats.count if n]
        inside = [r for r in rates if 10**bin_.least <= r and (r < 10**bin_.most or last)]
        assert bin_.features == len(inside)
    assert sum(bin_.features for bin_ in found) == (stats.count > 0).sum()


def test_the_densest_lead_and_the_dead_are_left_out(stats):
    rows = summary(stats, top=1000).top
    assert [row.firings for row in rows] == sorted((int(n) for n in stats.count if n), reverse=True)
    assert (rows[0].index, rows[0].label, rows[0].firing_rate) == (3, "always on", 1.0)
    column = activations()[:, rows[7].index].astype(np.float64)
    assert rows[7].mean_activation == pytest.approx(column[column > 0].mean())
    assert rows[7].max_activation == column.max()
    assert summary(stats, top=0).top == []


@pytest.mark.parametrize(
    ("stated", "warned"), [("12", False), ("8", False), ("7", True), ("30", False), ("31", True), (None, False)]
)
def test_l0_beside_the_stated_one(stats, stated, warned):
    assert 15.01 < stats.l0 < 15.49
    found = summary(stats, provenance=with_sae(f"org/sae/layer_3/average_l0_{stated}" if stated else "mine.npz"))
    assert found.stated_l0 == (int(stated) if stated else None)
    assert any("L0 is" in told for told in found.warnings) is warned
    assert as_text(found).count("WARNING") == len(found.warnings)


def test_text_fits_a_terminal_and_obeys_nobody(stats):
    long = dataclasses.replace(with_sae("/a/very/long/path" * 9 + "/params.npz"), corpus="many sources, " * 20)
    for provenance in (PROVENANCE, long):
        text = as_text(summary(stats, provenance=provenance, top=48))
        assert max(map(len, text.splitlines())) <= 80
        assert all(c.isprintable() or c == "\n" for c in text)
        assert "nan" not in text.split()
    assert "line break [31m red" in text


def test_bars_are_as_long_as_their_figures(stats):
    text = as_text(summary(stats))
    bars = [line.split()[3:] for line in text.splitlines() if " to " in line and line.startswith("  ")]
    lengths = {int(features): len(bar[0]) if bar else 0 for features, *bar in bars}
    most = max(lengths)
    assert lengths[most] == 48
    for features, length in lengths.items():
        assert length == np.ceil(round(48 * 8 * features / most) / 8)


def test_nothing_fired():
    found = summary(measured(np.zeros((10, WIDTH), np.float32)))
    assert (found.dead, found.l0, found.top) == (WIDTH, 0, [])
    assert "48 (100.0%) never fired" in as_text(found)


def test_one_token():
    assert "fire" in as_text(summary(measured(activations()[:1])))


def test_json_is_the_same_figures(saved, stats):
    found = json.loads(show(stats=str(saved), json=True, top=3), parse_constant=pytest.fail)
    wanted = summary(stats)
    assert found["provenance"]["pair"]["model_id"] == PAIR.model_id
    assert found["tokens"] == TOKENS
    assert (found["dead"], found["rare"], found["dense"]) == (wanted.dead, wanted.rare, wanted.dense)
    assert [row["index"] for row in found["top"]] == [row.index for row in wanted.top[:3]]
    assert found["top"][0]["label"] == "feature_3"


def test_the_pairs_own_file_and_labels(monkeypatch, tmp_path, stats):
    monkeypatch.setenv("NEUROSCOPE_CACHE", str(tmp_path))
    config = NeuroscopeConfig()
    with pytest.raises(UserError, match=r"no statistics of .*_stats\.json.*calibrate run"):
        show(config="gemma-2-2b-it")
    save_stats(cached_stats_path(config), stats, with_sae(config.sae_id))
    (tmp_path / "labels").mkdir()
    labels = tmp_path / "labels" / "gemma-2-2b_20-gemmascope-res-16k_neuronpedia.json"
    labels.write_text(json.dumps({"3": "full stops"}))
    shown = show(config="gemma-2-2b-it", top=1)
    assert f"{TOKENS} (BOS is fed in" in shown
    assert "full stops" in shown
    assert show(stats=str(cached_stats_path(config)), config="demo", top=1) == shown


def test_mistakes_are_named(saved):
    with pytest.raises(UserError, match="--top -1: expected 0 or more"):
        show(stats=str(saved), top=-1)
    with pytest.raises(UserError, match=r"gone\.json: cannot be read"):
        show(stats="gone.json")


def test_a_terminal_without_bars_gets_something_else(saved, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    show(stats=str(saved)).encode("ascii")


def test_a_picture(saved, tmp_path):
    pytest.importorskip("matplotlib")
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("bare", b"\x89PNG")):
        show(stats=str(saved), plot=str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(UserError, match=r"--plot .*a\.doc: .*end the name in \.png"):
        show(stats=str(saved), plot=str(tmp_path / "a.doc"))
    with pytest.raises(UserError, match=r"--plot .*: cannot be written: No such file"):
        show(stats=str(saved), plot=str(tmp_path / "no" / "a.png"))


def test_the_picture_shows_the_figures(stats):
    pytest.importorskip("matplotlib")
    found = summary(stats)
    density, l0 = plot._figure(found).axes
    assert [bar.get_height() for bar in density.patches] == [b.features for b in found.density]
    assert [line.get_xdata()[0] for line in density.lines] == pytest.approx(np.log10([0.5, 0.1]))
    assert [bar.get_width() for bar in l0.containers[0]] == [found.l0, 12]
    edges = summary(measured(np.zeros((10, WIDTH), np.float32)), provenance=with_sae("mine.npz"), threshold=0.0)
    assert len(plot._figure(edges).axes[1].containers[0]) == 1


def test_without_matplotlib_the_extra_is_named(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(UserError, match=r"--plot needs matplotlib: .*neuroscope-jax\[plot\]"):
        show(stats=str(saved), plot="x.png")
