"""The commands that run the model over a corpus: `calibrate run` and `calibrate merge`."""

from pathlib import Path
from typing import TYPE_CHECKING

from neuroscope_jax import flags
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.logs import LogLevel, log_to_stderr
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PairFlags, WorkFlags

if TYPE_CHECKING:
    from neuroscope_jax.corpus.hosts import Hosts
    from neuroscope_jax.corpus.output import Files

WORK = {name: getattr(NeuroscopeConfig, name) for name in ("sae_input_norm", "platform", "dtype")}


@flags.command(**SHOWN_DEFAULTS, **WORK)
@expanded
def run(
    *,
    pair: PairFlags,
    work: WorkFlags,
    corpus_path: str | None = None,
    samples: int = 1000,
    seed: int = 0,
    output: str | None = None,
    distributed: bool = False,
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    run_folder: str | None = None,
    restart: bool = False,
    save_every: float = 60.0,
    log_level: LogLevel = "info",
) -> str:
    """Run the model and SAE over a corpus: statistics and the best examples of every feature.

    Killed at any moment, the same command goes on from the last saved state. All devices of the platform work in
    parallel.

    Args:
        corpus_path: file or folder of .txt, .jsonl(.gz) or .parquet; without it the config's sources (WikiText-103)
        samples: stretches of at most 127 tokens to read, spread over the documents
        seed: of the choice of stretches and of the random examples
        output: statistics file to write, examples go beside it; without it where `serve` looks for them
        distributed: this is one of several hosts that read the corpus together
        coordinator: HOST:PORT of the first host, where JAX does not know it (it does on TPU pods and under Slurm)
        processes: how many hosts there are, where JAX does not know it
        process: number of this host, from 0, where JAX does not know it
        run_folder: where the unfinished pass is kept, instead of the cache folder
        restart: begin anew instead of going on with an unfinished pass
        save_every: seconds between two saved states
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    _check(samples, save_every, seed, distributed, (coordinator, processes, process))
    resolved = pair.resolved(**vars(work))
    files, folder = _files(output, resolved), Path(run_folder) if run_folder else None
    # Mistakes are told by now: a host that has left would keep the others waiting.
    hosts = _joined(distributed, coordinator, processes, process)
    from neuroscope_jax import platforms

    platforms.choose(resolved.platform)
    # Only now: these touch JAX, and must find the platform chosen.
    from neuroscope_jax.corpus.calibrate import Options, calibrate

    options = Options(corpus_path, samples, seed, files, folder, restart, save_every, hosts)
    return _report(calibrate(resolved, options), files, resolved)


@flags.command(**SHOWN_DEFAULTS)
def merge(
    *shards: str,
    config: str | None = None,
    model: str | None = None,
    sae: str | None = None,
    sae_layer: int | None = None,
    sae_width: str | None = None,
    sae_path: str | None = None,
    sae_local_path: str | None = None,
    output: str | None = None,
    log_level: LogLevel = "info",
) -> str:
    """Put the shards of `calibrate run --distributed` together, where the hosts share no folder.

    Args:
        shards: the files that the hosts wrote, all of them
        config: the pair's preset or .toml file, as it was for the run
        model: hub id or local folder of the checkpoint, as it was for the run
        sae: hub id or local folder of the SAE release
        sae_layer: block whose output the SAE reads
        sae_width: number of features, as the release writes it
        sae_path: SAE file within the release
        sae_local_path: SAE file on this machine
        output: statistics file to write, examples go beside it; without it where `serve` looks for them
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    pair = PairFlags(
        config=config,
        model=model,
        sae=sae,
        sae_layer=sae_layer,
        sae_width=sae_width,
        sae_path=sae_path,
        sae_local_path=sae_local_path,
    )
    resolved = pair.resolved(platform="cpu")
    from neuroscope_jax import platforms

    platforms.choose(resolved.platform)
    from neuroscope_jax.corpus import calibrate

    files = _files(output, resolved)
    return _report(calibrate.merge(resolved, [Path(shard) for shard in shards], files), files, resolved)


def _check(samples: int, save_every: float, seed: int, distributed: bool, hosts: tuple[object, ...]) -> None:
    if not 1 <= samples < 2**24:
        raise flags.UsageError(f"--samples {samples}: expected from 1 to {2**24 - 1:,}")
    if not 0 <= seed < 2**32:
        raise flags.UsageError(f"--seed {seed}: expected from 0 to {2**32 - 1}")
    if save_every < 0:
        raise flags.UsageError(f"--save-every {save_every}: expected 0 or more seconds")
    if not distributed and any(value is not None for value in hosts):
        raise flags.UsageError("--coordinator, --processes and --process belong to --distributed, which is not given")


def _joined(distributed: bool, coordinator: str | None, processes: int | None, process: int | None) -> "Hosts":
    from neuroscope_jax.corpus.hosts import Hosts, join

    return join(coordinator, processes, process) if distributed else Hosts()


def _files(output: str | None, config: NeuroscopeConfig) -> "Files":
    from neuroscope_jax.corpus.output import Files
    from neuroscope_jax.features.calibration import cached_stats_path
    from neuroscope_jax.files import check_place

    if output is None:
        return Files(cached_stats_path(config))
    if Path(output).suffix != ".json":
        raise UserError(f"--output {output}: expected a name that ends in .json; examples are written beside it")
    files = Files(Path(output))
    try:
        for path in files.all():
            check_place(path)
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}; name another place") from error
    return files


def _report(written: list[Path], files: "Files", config: NeuroscopeConfig) -> str:
    """The summary of a finished pass, and what was written."""
    from neuroscope_jax.features.commands import shown

    paths = [str(path) for path in written]
    return "\n".join([*([shown(files.stats, config), ""] if files.stats in written else []), "written:", *paths])
