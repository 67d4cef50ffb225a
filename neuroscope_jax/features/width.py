"""How many features an SAE has, without loading it."""

import re
import zipfile
import zlib
from pathlib import Path

import numpy as np

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import what_it_is
from neuroscope_jax.models.hub import sae_on_this_machine

NAMED = re.compile(r"(?<![^\W_])([1-9]\d{0,3})([km])(?![^\W_])")  # the 16k of 20-gemmascope-res-16k


def width_of(config: NeuroscopeConfig) -> int:
    """Number of features, from the SAE's file where it is on this machine, else from the name of its labels.

    Raises UserError where neither tells, and where the two disagree.
    """
    file, named = _file(config), width_named(config.neuronpedia_sae_id)
    if file is None and named is None:
        raise UserError(
            f"{config.sae_id} is not on this machine, and {config.neuronpedia_sae_id} does not say how many features "
            "it has; download it with `neuroscope_jax sae pull`, then run the same command again"
        )
    if file is None:
        return named or 0
    width = _read(file)
    if named not in (None, width):
        raise UserError(
            f"{file} has {width} features, but neuronpedia_sae_id is {config.neuronpedia_sae_id}, which has {named}: "
            "labels of another SAE; correct the id, or choose the SAE with --sae-width"
        )
    return width


def width_named(sae_id: str) -> int | None:
    """The width that an SAE's id names: 16k is 16,384, 65k 65,536 and 1m 1,048,576. None where it names none."""
    match = NAMED.search(sae_id)
    if match is None:
        return None
    thousands = 1 if match[2] == "k" else 2
    for power in (1 << n for n in range(31)):  # widths are powers of two, rounded down to thousands of either kind
        if int(match[1]) in (power // 1000**thousands, power // 1024**thousands):
            return power
    return None


def _file(config: NeuroscopeConfig) -> Path | None:
    if config.sae_local_path is not None:
        return Path(config.sae_local_path)
    return sae_on_this_machine(config.sae_repo, config.sae_path)


def _read(file: Path) -> int:
    """From the smallest array that tells."""
    try:
        with np.load(file) as arrays:
            return int(arrays["b_enc"].shape[0])
    except FileNotFoundError as error:
        raise UserError(f"{file}: no such SAE file; check --sae-path or --sae-local-path") from error
    except (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{file}: {what_it_is(file)}, expected a Gemma Scope params.npz; download it again") from error
