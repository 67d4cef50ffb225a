"""A calibration from its settings to its files: corpus ─▶ tokens ─▶ samples ─▶ pass ─▶ statistics and examples.

Whatever is unfinished lies in one folder of the cache, named by all that decides the result; the same command finds it
there and goes on.
"""

import contextlib
import dataclasses
import logging
from pathlib import Path

import jax

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
from neuroscope_jax.corpus.unfinished import STATE_FOLDER, unfinished
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance, cached_stats_path, read_stats, stats_path
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.explained import explained
from neuroscope_jax.native import kernels

logger = logging.getLogger(__name__)


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
    if options.hosts.count > 1 and config.dtype == "auto" and jax.default_backend() == "cpu":
        raise UserError("--dtype auto: hosts of unequal memory would choose unlike; say float32 or bfloat16")
    corpus = open_corpus(config, options.corpus_path, options.samples)
    mesh = local_mesh()
    kernels.prepare()
    part, params, sae = pair.load(mesh)
    provenance = setup.provenance(pair, sae, corpus, options.samples, options.seed)
    name = f"{provenance.run}-{rows_a_device(sae)}x{mesh.size}-{options.hosts.index}of{options.hosts.count}"
    with unfinished(_folder(options, name), name, provenance, options.restart) as folder:
        texts = tokenise(corpus, pair.tokenizer, folder)
        chosen = samples.choose(texts.begins, options.samples, options.seed)
        provenance = dataclasses.replace(provenance, samples=len(chosen))
        numbers = options.hosts.share(chosen)
        logger.info("%d samples of %s, %d of them here", len(chosen), corpus.name, len(numbers))
        work = Pass(part, params, sae, texts, chosen, Structure.of(pair.tokenizer), options.seed)
        with (
            contextlib.closing(Checkpoints(folder / STATE_FOLDER)) as checkpoints,
            explained(pair.folder, "--dtype bfloat16"),
        ):
            found = run(work, numbers, mesh, checkpoints, options.save_every)
        shard = Shard(found, passages.cited(texts, chosen, found), provenance, options.hosts)
        return _finish(config, shard, options, pair.tokenizer)


def merge(config: NeuroscopeConfig, paths: list[Path], files: Files) -> list[Path]:
    """The results of a pass from the shards of all its hosts. Raises UserError for those of other passes or pairs."""
    collected, cited, provenance = shards.merge(paths)
    pair = setup.find(config)
    misfits = provenance.pair.misfits(setup.identity(pair, provenance.pair.width))
    if misfits:
        raise UserError(f"{paths[0]}: shards of {' and '.join(misfits)}; name their pair with --config or --model")
    _write(config, files, collected, cited, provenance, pair.tokenizer)
    return files.all()


def _finish(config: NeuroscopeConfig, shard: Shard, options: Options, tokenizer: ChatTokenizer) -> list[Path]:
    files, hosts = options.output, options.hosts
    if hosts.count == 1:
        _write(config, files, shard.collected, shard.passages, shard.provenance, tokenizer)
        return files.all()
    paths = [files.shard(i, hosts.count) for i in range(hosts.count)]
    shards.save(paths[hosts.index], shard)
    hosts.wait("shards")
    written = [paths[hosts.index]]
    if hosts.index == 0:
        absent = [path for path in paths if not path.exists()]
        if absent:
            logger.warning("not visible from here: %s; bring all shards together and run `calibrate merge`", absent[0])
        else:
            _write(config, files, *shards.merge(paths), tokenizer)
            written = files.all()
    hosts.wait("results")  # until then every host keeps what it would need to do this again
    return written


def _write(
    config: NeuroscopeConfig,
    files: Files,
    found: Collected,
    cited: Passages,
    provenance: Provenance,
    tokenizer: ChatTokenizer,
) -> None:
    replaced = stats_path(config) if files.stats == cached_stats_path(config) else files.stats
    earlier = _tokens(replaced)
    duplicates = output.write(files, found, cited, tokenizer, provenance)
    logger.info("%d near duplicates of other candidates were left out of the examples", duplicates)
    if found.tokens < earlier and replaced == files.stats:
        logger.warning("%s: had %d tokens, now has %d", replaced, earlier, found.tokens)
    elif found.tokens < earlier:
        words = "%s (%d tokens) now goes before %s (%d tokens); delete it to go back"
        logger.warning(words, files.stats, found.tokens, replaced, earlier)


def _tokens(stats: Path) -> int:
    """How many tokens statistics are of; 0 where there are none that can be read."""
    try:
        return read_stats(stats)[0].tokens
    except UserError:
        return 0


def _folder(options: Options, name: str) -> Path:
    """Where the pass of this name is kept; hosts that share a folder get one each in it."""
    if options.folder is None:
        folder = cache_folder() / "calibration" / "unfinished"
        others = [entry for entry in folder.glob("*-*") if entry.name != name]
        if others:
            logger.info("%d other unfinished passes are kept in %s; delete those you do not want", len(others), folder)
        return folder / name
    return options.folder / f"host_{options.hosts.index}" if options.hosts.count > 1 else options.folder
