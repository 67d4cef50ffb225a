"""The commands about corpora: `corpus build` and `corpus show`."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroscope_jax import flags
from neuroscope_jax.config import CorpusSource, NeuroscopeConfig, load_preset
from neuroscope_jax.errors import UserError

if TYPE_CHECKING:
    from neuroscope_jax.corpus.store import Stored

DEFAULT = NeuroscopeConfig().corpus
NOTHING = "There is no corpus in {folder} yet. `corpus build` makes one, and `calibrate run` the one that it needs."


@flags.command(dataset=DEFAULT[0].dataset, config=DEFAULT[0].config, split=DEFAULT[0].split, text_field="text")
def build(
    *,
    samples: int = 2000,
    dataset: str | None = None,
    config: str | None = None,
    split: str | None = None,
    text_field: str | None = None,
) -> str:
    """Fetch texts and keep them in the cache folder, for calibration and labels.

    Without --dataset: the sources of the configuration, WikiText-103 where it names none.

    Args:
        samples: documents to keep (articles of WikiText, rows of another dataset), chosen at random over the whole
        dataset: hub id of a text dataset; wikitext stands for Salesforce/wikitext
        config: with --dataset its configuration; else a preset (demo, ...) or a .toml file with [[corpus]] tables
        split: of the dataset
        text_field: column of the dataset that holds the text
    """
    if samples < 1:
        raise flags.UsageError(f"--samples {samples}: expected 1 or more")
    sources = _sources(dataset, config, split, text_field)
    from neuroscope_jax.corpus import store
    from neuroscope_jax.corpus.build import build as build_corpus

    found = store.find(sources, samples)
    stored = found or build_corpus(sources, samples)
    manifest = stored.manifest
    lines = [
        f"{manifest.documents:,} documents, {manifest.characters:,} characters from {manifest.name}"
        + (" (there already)" if found else ""),
        *([f"Fewer than the {samples:,} asked for: there are no more."] if manifest.documents < samples else []),
        str(stored.folder),
        *(_how_to_use(sources[0]) if dataset and sources != DEFAULT else []),
    ]
    return "\n".join(lines)


@flags.command()
def show(*, config: str | None = None, json: bool = False) -> str:
    """What corpora are in the cache folder.

    Args:
        config: only those of the sources of a preset (demo, ...) or a .toml file
        json: print JSON instead of a table
    """
    from neuroscope_jax.corpus import store
    from neuroscope_jax.corpus.mix import name_of

    rows = [_row(folder, found) for folder, found in store.stored()]
    if config is not None:
        rows = [row for row in rows if row.get("name") == name_of(load_preset(config).corpus)]
    if json:
        return json_text.dumps(rows, indent=2, ensure_ascii=False)
    if not rows:
        return NOTHING.format(folder=store.corpus_folder())
    return _table(store.corpus_folder(), rows)


def _sources(
    dataset: str | None, config: str | None, split: str | None, text_field: str | None
) -> tuple[CorpusSource, ...]:
    """What the flags of `build` name."""
    if dataset is None:
        for flag, value in (("--split", split), ("--text-field", text_field)):
            if value is not None:
                raise flags.UsageError(f"{flag} {value}: belongs to a dataset; name it with --dataset")
        return load_preset(config).corpus if config else DEFAULT
    from neuroscope_jax.corpus import hub

    repo = hub.dataset_id(dataset)
    if config is None and repo == DEFAULT[0].dataset:
        config = DEFAULT[0].config
    split, text_field = split or CorpusSource.split, text_field or CorpusSource.text_field
    return (CorpusSource(dataset=repo, config=config, split=split, text_field=text_field),)


def _how_to_use(source: CorpusSource) -> list[str]:
    fields = ("dataset", "config", "split", "text_field")
    given = [(name, getattr(source, name)) for name in fields if getattr(source, name) != getattr(CorpusSource, name)]
    lines = [f"{name} = {json_text.dumps(value)}" for name, value in given]
    return ["To use it, put this into a .toml file and give that as --config:", "[[corpus]]", *lines]


def _row(folder: Path, found: "Stored | UserError") -> dict[str, Any]:
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    try:
        if isinstance(found, UserError):
            raise found
        found.check()
    except UserError as error:
        return {"folder": str(folder), "bytes": size, "damaged": str(error)}
    manifest = found.manifest
    return {
        "folder": str(folder),
        "name": manifest.name,
        "documents": manifest.documents,
        "whole": manifest.whole,
        "characters": manifest.characters,
        "sources": [{"name": p.name, "version": p.version, "documents": p.documents} for p in manifest.parts],
        "sha256": manifest.sha256,
        "made": manifest.made,
        "bytes": size,
    }


def _table(folder: Path, rows: list[dict[str, Any]]) -> str:
    heading = ("corpus", "documents", "characters", "MB", "made", "sha256", "sources")
    cells = [heading, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heading) - 1)]
    right = ("documents", "characters", "MB")
    lines = []
    for line in cells:
        columns = zip(heading, line, widths, strict=False)
        padded = [cell.rjust(width) if name in right else cell.ljust(width) for name, cell, width in columns]
        lines.append("  ".join([*padded, line[-1]]))
    return "\n".join([f"{folder}:", "", *lines])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    name, size = Path(row["folder"]).name, f"{row['bytes'] / 1e6:,.1f}"
    if "damaged" in row:
        return name, "", "", size, "", "damaged", row["damaged"]
    sources = ", ".join(f"{part['documents']:,} of {part['name']}" for part in row["sources"])
    documents = f"{row['documents']:,}" + (" (all)" if row["whole"] else "")
    return name, documents, f"{row['characters']:,}", size, row["made"][:10], row["sha256"][:12], sources
