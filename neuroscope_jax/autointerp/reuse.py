"""The corpus pass that labels are made from: one that is finished where it will do, else run now."""

import dataclasses
import logging
from pathlib import Path

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.calibrate import Options, calibrate
from neuroscope_jax.corpus.documents import open_corpus
from neuroscope_jax.corpus.hosts import Hosts
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance, cached_stats_path, load_stats
from neuroscope_jax.identity import PairIdentity
from neuroscope_jax.sae.formats import load_sae

logger = logging.getLogger(__name__)

SAMPLES = 50_000
SAVE_EVERY = 60.0  # seconds


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What was said about the pass; None where nothing was."""

    corpus_path: str | None = None
    samples: int | None = None
    seed: int | None = None

    def options(self, files: Files) -> Options:
        """Of a pass, defaults filled in."""
        samples = SAMPLES if self.samples is None else self.samples
        return Options(self.corpus_path, samples, self.seed or 0, files, None, False, SAVE_EVERY, Hosts())


def pass_of(pair: setup.Pair, identity: PairIdentity, wanted: Wanted, command: str | None = None) -> Files:
    """A pass over the pair as wanted; where nothing is wanted any finished one will do.

    An unfinished one is gone on with. Raises UserError where the named --calibration-path is of another pair and,
    naming the `command` that would run the pass where one is given, instead of running it.
    """
    files = files_of(pair.config)
    if pair.config.calibration_path is not None:
        load_stats(files.stats, identity)
        return files
    options = wanted.options(files)
    found = _finished(files, pair.config, identity)
    if found and (wanted == Wanted() or _agrees(found, pair, options)):
        told = f"{found.samples:,} samples of {found.corpus}, seed {found.seed}, made {found.made}"
        logger.info("reusing the corpus pass at %s: %s", files.stats, told)
    elif command is None:
        calibrate(pair.config, options)
    else:
        raise UserError(
            f"no finished corpus pass of {pair.config.sae_id} as asked for, and a dry run makes none. Make it with "
            f"`{command}`, then run the same command again"
        )
    return files


def files_of(config: NeuroscopeConfig) -> Files:
    """Where the pair's pass is or will be."""
    return Files(Path(config.calibration_path or cached_stats_path(config)))


def _finished(files: Files, config: NeuroscopeConfig, identity: PairIdentity) -> Provenance | None:
    """Of the pass that is there; None where there is none, or one of something else."""
    if not all(path.exists() for path in (files.stats, files.examples, files.windows)):
        return None
    try:
        _, found = load_stats(files.stats, identity)
    except UserError as error:
        logger.warning("the corpus pass is run anew: %s", error)
        return None
    asked = {"--sae-input-norm": (config.sae_input_norm, found.sae_input_norm), "--dtype": (config.dtype, found.dtype)}
    for flag, (wanted, made_with) in asked.items():
        if wanted not in ("auto", made_with):
            logger.info("the corpus pass at %s is not reused: %s was %s", files.stats, flag, made_with)
            return None
    return found


def _agrees(found: Provenance, pair: setup.Pair, options: Options) -> bool:
    """Whether a pass with these options would be the very one that was found."""
    sae = load_sae(pair.sae_path, pair.model.config.hidden_size, pair.config.sae_input_norm)
    corpus = open_corpus(pair.config, options.corpus_path, options.samples)
    return setup.provenance(pair, sae, corpus, options.samples, options.seed).run == found.run
