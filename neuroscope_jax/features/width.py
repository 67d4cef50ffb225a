"""How many features an SAE has, without loading it."""

import re
from pathlib import Path

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.hub import sae_on_this_machine
from neuroscope_jax.sae.formats import width_of_file

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
    width = width_of_file(file)
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
