"""The pages of a report, written to a folder.

index.html ◀─ data/index.js              one row a feature
feature.html#4521 ◀─ data/00070.js       everything about the 64 features around
both ◀─ data/report.js                   what holds for all of them
"""

import datetime
import importlib.resources
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2

from neuroscope_jax import __version__
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.corpus.shading import Shading
from neuroscope_jax.features.logits import TokenScores
from neuroscope_jax.pages import facts
from neuroscope_jax.pages.columns import columns
from neuroscope_jax.pages.contexts import Context, Pieces, plain
from neuroscope_jax.pages.examples import Example, Examples
from neuroscope_jax.pages.folder import DATA, mark
from neuroscope_jax.pages.known import Known, Measured
from neuroscope_jax.pages.record import Record, Texts, record
from neuroscope_jax.pages.scripts import write_call

PER_SHARD = 64  # features of a data script: some 300 kB
PAGES = ("index.html", "feature.html")
HEADS = (  # of the index: column, heading, kind
    ("id", "feature", "words"),
    ("label", "label", "words"),
    ("source", "source", "words"),
    ("confidence", "confidence (labeler's own)", "words"),
    ("score", "score", "figure"),
    ("rate", "firing rate", "figure"),
    ("max", "max", "figure"),
    ("flags", "flags", "words"),
)


@dataclass(frozen=True)
class Sources:
    """Where the contents of the features' pages come from, each asked by rising feature."""

    examples: Examples
    shading: tuple[Shading, Pieces] | None  # None to shade the firing token alone
    logits: Iterator[tuple[int, TokenScores]] | None  # of the very features of the report, in their order

    def contexts(self, feature: int) -> list[tuple[Example, Context]]:
        """The feature's examples, each with its context in pieces."""
        found = self.examples.of(feature)
        if self.shading is None:
            return [(example, plain(example)) for example in found]
        activations, pieces = self.shading[0].of(feature), self.shading[1]
        return [
            (example, pieces.shaded(example, activations[example.document, example.offset].tolist()))
            for example in found
        ]


def write(folder: Path, known: Known, measured: Measured, features: list[int], sources: Sources) -> None:
    """Write the report on these features, which rise, into an empty folder. Memory does not grow with their number."""
    made = datetime.datetime.now(datetime.UTC)
    stamp = f"{made:%Y%m%d%H%M%S}"  # in the scripts' addresses: no browser shows an older report's
    data = folder / DATA
    data.mkdir()
    with progress("pages", len(features), "features") as bar:
        for number, shard in enumerate(_shards(features)):
            texts = Texts()
            records = [_record(known, measured, feature, sources, texts) for feature in shard]
            content = {"texts": texts.table(), "features": records}
            write_call(data / f"{number:05}.js", "neuroscope.shard", number, content)
            bar.update(len(shard))
    write_call(data / "index.js", "neuroscope.index", columns(known, measured, features))
    whole = facts.facts(known, measured, PER_SHARD, stamp, shaded=sources.shading is not None)
    write_call(data / "report.js", "neuroscope.report", whole)
    _write_shells(folder, known, measured, features, stamp)
    mark(folder, f"neuroscope {__version__}", made.isoformat(timespec="seconds"))


def _shards(features: list[int]) -> Iterable[list[int]]:
    return (features[at : at + PER_SHARD] for at in range(0, len(features), PER_SHARD))


def _record(known: Known, measured: Measured, feature: int, sources: Sources, texts: Texts) -> Record:
    detail, source = known.detail(feature), known.source_in_full(feature)
    found = record(measured.stats, feature, source, detail, sources.contexts(feature), texts)
    if sources.logits is not None:
        scores = next(sources.logits)[1]
        found["logits"] = {
            "top": [[token.text, round(token.score, 4)] for token in scores.top],
            "bottom": [[token.text, round(token.score, 4)] for token in scores.bottom],
        }
    return found


def _write_shells(folder: Path, known: Known, measured: Measured, features: list[int], stamp: str) -> None:
    """The pages without their data, their scripts and their style sheet."""
    pair = measured.provenance.pair
    loader = jinja2.PackageLoader("neuroscope_jax.pages")
    templates = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    values = {
        "title": pair.model_id,
        "subtitle": f"{pair.sae_id}, {pair.width:,} features, read after layer {pair.layer}",
        "stamp": stamp,
        "heads": HEADS,
        "summary": list(facts.summary(known, measured, features)),
        "score_notes": list(facts.score_notes(known)),
        "origin": list(facts.origin(known, measured)),
    }
    for page in PAGES:
        (folder / page).write_text(templates.get_template(page).render(values), encoding="utf-8")
    for static in importlib.resources.files("neuroscope_jax.pages").joinpath("static").iterdir():
        (folder / static.name).write_bytes(static.read_bytes())
