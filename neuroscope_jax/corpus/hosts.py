"""One pass on several hosts: who is who comes from jax.distributed, each reads its own documents."""

import dataclasses

import numpy as np
from jaxtyping import Int

from neuroscope_jax.corpus.samples import Samples
from neuroscope_jax.errors import UserError

PATIENCE = 300  # seconds for the other hosts to appear


@dataclasses.dataclass(frozen=True)
class Hosts:
    """This host's number among how many."""

    index: int = 0
    count: int = 1

    def share(self, samples: Samples) -> Int[np.ndarray, " n"]:
        """Numbers of the samples this host reads: those of every count-th document."""
        return np.flatnonzero(samples.document % self.count == self.index)

    def wait(self, what: str) -> None:
        """Until every host is here."""
        if self.count > 1:
            from jax.experimental import multihost_utils

            multihost_utils.sync_global_devices(what)


def join(coordinator: str | None, processes: int | None, process: int | None) -> Hosts:
    """Meet the other hosts; before anything touches a device. On a TPU pod or under Slurm JAX knows all three itself.

    Raises UserError where they cannot be found.
    """
    import jax

    try:
        jax.distributed.initialize(coordinator, processes, process, initialization_timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"--distributed: the hosts did not find each other: {str(error).splitlines()[0]}; "
            "outside TPU pods and Slurm give --coordinator HOST:PORT --processes N --process I on each"
        ) from error
    return Hosts(jax.process_index(), jax.process_count())
