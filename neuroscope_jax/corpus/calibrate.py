"""A calibration from its settings to its files: corpus ─▶ tokens ─▶ samples ─▶ pass ─▶ statistics and examples.

Whatever is unfinished lies in one folder of the cache, named by all that decides the result; the same command finds it
there and goes on.
"""

import contextlib
import dataclasses
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import filelock
import jax
import msgspec

from neuroscope_jax.config import NeuroscopeConfig, cache_folder
from neuroscope_jax.corpus import output, passages, samples, setup, shards
from neuroscope_jax.corpus.checkpoint import Checkpoints
from neuroscope_jax.corpus.collected import Collected
from neuroscope_jax.corpus.documents import open_corpus
from neuroscope_jax.corpus.hosts import Hosts
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.corpus.passages import Passages
from neuroscope_jax.corpus.run import Pass, rows_a_device, run
from neuroscope_jax.corpus.shards import Shard
from neuroscope_jax.corpus.step import local_mesh
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.corpus.tokenised import tokenise
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.files import read_json
from neuroscope_jax.models.chat import ChatTokenizer

logger = logging.getLogger(__name__)

SETTINGS_FILE = "settings.json"


class Settings(msgspec.Struct):
    """What decides the result of the pass in a folder; `name` tells two of them apart."""

    name: str
    provenance: Provenance


@dataclasses.dataclass(frozen=True)
class Options:
    """What a user may say about a pass beside the pair."""

    corpus_path: str | None
    samples: int
    seed: int
    output: Files
    folder: Path | None  # of the unfinished pass, where not the cache's
    restart: bool
    save_every: float  # seconds
    hosts: Hosts


def calibrate(config: NeuroscopeConfig, options: Options) -> list[Path]:
    """Run this host's part of a pass. Returns the files written: all results, or one shard where there are more hosts.

    Raises UserError for what cannot be read, written or does not fit together.
    """
    pair = setup.find(config)
    corpus = open_corpus(config, options.corpus_path, options.samples)
    mesh = local_mesh()
    part, params, sae = pair.load(mesh)
    provenance = setup.provenance(pair, sae, corpus, options.samples, options.seed)
    rows = rows_a_device(sae)
    with _folder(options, provenance, f"{rows}x{mesh.size}") as folder:
        texts = tokenise(corpus, pair.tokenizer, folder)
        chosen = samples.choose(texts.begins, options.samples, options.seed)
        provenance = dataclasses.replace(provenance, samples=len(chosen))
        numbers = options.hosts.share(chosen)
        logger.info("%d samples of %s, %d of them here", len(chosen), corpus.name, len(numbers))
        work = Pass(part, params, sae, texts, chosen, Structure.of(pair.tokenizer), options.seed)
        with contextlib.closing(Checkpoints(folder / "state")) as checkpoints, _explained(pair.folder):
            found = run(work, numbers, mesh, checkpoints, options.save_every)
        shard = Shard(found, passages.cited(texts, chosen, found), provenance, options.hosts)
        return _finish(shard, options, pair.tokenizer)


def merge(config: NeuroscopeConfig, paths: list[Path], files: Files) -> list[Path]:
    """The results of a pass from the shards of all its hosts. Raises UserError for those of other passes or pairs."""
    collected, cited, provenance = shards.merge(paths)
    pair = setup.find(config)
    misfits = provenance.pair.misfits(setup.identity(pair, provenance.pair.width))
    if misfits:
        raise UserError(f"{paths[0]}: shards of {' and '.join(misfits)}; name their pair with --config or --model")
    _write(files, collected, cited, provenance, pair.tokenizer)
    return files.all()


def _finish(shard: Shard, options: Options, tokenizer: ChatTokenizer) -> list[Path]:
    files, hosts = options.output, options.hosts
    if hosts.count == 1:
        _write(files, shard.collected, shard.passages, shard.provenance, tokenizer)
        return files.all()
    paths = [files.shard(i, hosts.count) for i in range(hosts.count)]
    shards.save(paths[hosts.index], shard)
    hosts.wait("shards")
    if hosts.index > 0:
        return [paths[hosts.index]]
    absent = [path for path in paths if not path.exists()]
    if absent:
        logger.warning("not visible from here: %s; bring all shards together and run `calibrate merge`", absent[0])
        return [paths[0]]
    _write(files, *shards.merge(paths), tokenizer)
    return files.all()


def _write(files: Files, found: Collected, cited: Passages, provenance: Provenance, tokenizer: ChatTokenizer) -> None:
    duplicates = output.write(files, found, cited, tokenizer, provenance)
    logger.info("%d near duplicates were left out of the examples", duplicates)


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """What a device can run into, in a user's words."""
    try:
        yield
    except FloatingPointError as error:
        raise UserError(f"{folder}: {error}; the weights are damaged, or config.json is another model's") from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(f"{folder}: not enough memory; try --dtype bfloat16") from error


@contextlib.contextmanager
def _folder(options: Options, provenance: Provenance, layout: str) -> Iterator[Path]:
    """The folder of this unfinished pass, for this process alone; removed once its result is written."""
    hosts = options.hosts
    name = f"{provenance.run}-{layout}-{hosts.index}of{hosts.count}"
    folder = options.folder or cache_folder() / "calibration" / "unfinished" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / "lock", blocking=False)
        with lock:
            _settle(folder, provenance, name, options.restart)
            yield folder
            shutil.rmtree(folder)
    except filelock.Timeout as error:
        raise UserError(f"{folder}: another process is at work on this very pass; wait for it, or end it") from error
    except OSError as error:
        raise UserError(
            f"{error.filename or folder}: {error.strerror or error}; what was counted so far is kept in {folder}: "
            "make room, then run the same command again"
        ) from error


def _settle(folder: Path, provenance: Provenance, name: str, restart: bool) -> None:
    """Make sure that what is in the folder belongs to this pass."""
    settings = folder / SETTINGS_FILE
    if restart:
        for entry in folder.iterdir():
            if entry.name != "lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    if settings.exists():
        found = read_json(settings, Settings)
        if found.name != name:
            raise UserError(
                f"{folder}: an unfinished pass of {_told(found.provenance)}; this one is of {_told(provenance)}. "
                "Name another --run-folder, or give --restart to begin anew there"
            )
        logger.info("going on with the pass begun %s in %s", found.provenance.made, folder)
        return
    settings.write_bytes(msgspec.json.encode(Settings(name, provenance)))


def _told(p: Provenance) -> str:
    pair = f"{p.pair.model_id} ({p.pair.model_sha256[:8]}), {p.pair.sae_id} ({p.pair.sae_sha256[:8]}), {p.dtype}"
    return f"{pair}, {p.samples} samples of {p.corpus} ({p.corpus_sha256[:8]}), seed {p.seed}"
