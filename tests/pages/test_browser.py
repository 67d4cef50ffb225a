"""The pages in a real browser, from file://: they draw what the data says, and no text of it runs."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.features.measured import WIDTH
from tests.pages.conftest import HOSTILE

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell")
PATIENCE = 120  # seconds


@pytest.fixture(scope="module")
def browser() -> str:
    found = os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        pytest.skip("NO BROWSER: the pages were not opened; install chromium, or name one in CHROME")
    return found


class Page(HTMLParser):
    """A page as the browser drew it."""

    def __init__(self, dom: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.title, self._in = "", "", ""
        self.feed(dom)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "title":
            self.title += data
        else:
            self.text += data

    def having(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of elements of a class."""
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]


@pytest.fixture
def opened(browser: str, report: Path, tmp_path: Path):
    def page(address: str) -> Page:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
        flags += ["--virtual-time-budget=10000", "--window-size=1200,800", "--lang=en"]
        command = [browser, *flags, f"file://{report}/{address}"]
        return Page(subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True).stdout.decode())

    return page


def test_index(opened):
    page = opened("index.html")
    rows = page.having("row")
    assert 20 < len(rows) <= WIDTH
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links[:3] == ["feature.html#0", "feature.html#1", "feature.html#2"]
    assert f"{WIDTH} features" in page.text
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[3], HOSTILE[4]):
        assert text in page.text
    assert "⟨U+202E⟩override" in page.text
    assert "taken" not in page.title
    assert [attrs.get("src") for tag, attrs in page.tags if tag == "img"] == []
    assert all(attrs.get("src") for tag, attrs in page.tags if tag == "script")


def test_the_address_says_what_is_shown(opened):
    page = opened("index.html#q=quotes&sort=score-")
    assert len(page.having("row")) == 1
    assert f"1 of {WIDTH} features" in page.text
    flagged = opened("index.html#flags=3")  # low score
    assert [attrs["href"] for tag, attrs in flagged.tags if tag == "a"] == ["feature.html#1", "feature.html#6"]


def test_feature(opened):
    page = opened("feature.html#1")
    assert page.title.startswith("1 ")
    assert HOSTILE[1] in page.text
    shaded = page.having("token")
    assert len(page.having("fires")) == 2  # top and random
    heats = [float(re.sub(r"[^0-9.]", "", attrs.get("style") or "0")) for attrs in shaded]
    assert all(0 < heat <= 1 for heat in heats)
    assert any(tag == "rect" for tag, _ in page.tags)
    for words in ("0.55", "judged silent", "<b>wrong</b>⟨U+2028⟩", "<i>pattern</i>", "labeller-1", "low score"):
        assert words in page.text
    assert all(attrs.get("src") for tag, attrs in page.tags if tag == "script")


def test_link_to_neuronpedia(opened, report):
    facts = report / "data" / "report.js"
    facts.write_text(facts.read_text().replace('"neuronpedia":null', '"neuronpedia":"https://example.org/sae/"'))
    links = [attrs["href"] for tag, attrs in opened("feature.html#7").tags if tag == "a"]
    assert "https://example.org/sae/7" in links
    assert "feature.html#6" in links
    assert "feature.html#8" in links


def test_features_without_anything(opened):
    dead = opened("feature.html#0")
    assert HOSTILE[0] in dead.text
    assert not any(tag == "svg" for tag, _ in dead.tags)
    assert "Label dropped (score 0.55, below 0.60): 'taken back'" in opened("feature.html#6").text
    for address in ("99", "%", "-1", "name"):
        assert f"There is no feature {address} in this report." in opened(f"feature.html#{address}").text


def test_a_missing_shard_is_said(opened, report):
    (report / "data" / "00000.js").unlink()
    assert "data/00000.js cannot be loaded" in opened("feature.html#1").text
