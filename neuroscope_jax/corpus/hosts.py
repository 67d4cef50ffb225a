"""One pass on several hosts: who is who comes from jax.distributed, each reads its own documents."""

import dataclasses
import socket
import time

import numpy as np
from jaxtyping import Int

from neuroscope_jax.corpus.samples import Samples
from neuroscope_jax.errors import UserError

PATIENCE = 300  # seconds for the other hosts to appear
SLOWEST = 86_400  # seconds that the first host to finish waits for the last


@dataclasses.dataclass(frozen=True)
class Hosts:
    """This host's number among how many."""

    index: int = 0
    count: int = 1

    def share(self, samples: Samples) -> Int[np.ndarray, " n"]:
        """Numbers of the samples this host reads: those of every count-th document."""
        return np.flatnonzero(samples.document % self.count == self.index)

    def wait(self, what: str) -> None:
        """Until every host is here. Raises UserError where one does not come."""
        if self.count == 1:
            return
        # Not `sync_global_devices`, a collective of the devices: on CPU it gives up after 30 seconds.
        from orbax.checkpoint import multihost

        try:
            multihost.get_barrier_sync_fn()(key=what, timeout_ms=SLOWEST * 1000)
        except RuntimeError as error:
            raise UserError(
                f"--distributed: not all hosts have come to the {what}: {str(error).splitlines()[0]}; run the same "
                "command again on all of them, or bring the shards together with `calibrate merge`"
            ) from error


def join(coordinator: str | None, processes: int | None, process: int | None) -> Hosts:
    """Meet the other hosts; before anything touches a device. On a TPU pod or under Slurm JAX knows all three itself.

    Raises UserError where they cannot be found.
    """
    import jax

    if coordinator is not None:
        _reach(coordinator, listens=not process)
    try:
        jax.distributed.initialize(coordinator, processes, process, initialization_timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"--distributed: the hosts did not find each other: {str(error).splitlines()[0]}; "
            "outside TPU pods and Slurm give --coordinator HOST:PORT --processes N --process I on each"
        ) from error
    return Hosts(jax.process_index(), jax.process_count())


def _reach(coordinator: str, listens: bool) -> None:
    """Wait until the first host is there. XLA would end the whole process where it is not in time.

    Raises UserError for an address that is none, or where nobody answers.
    """
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"--coordinator {coordinator}: expected HOST:PORT of the first host")
    deadline = time.monotonic() + PATIENCE
    while not listens:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
            return
        except socket.gaierror as error:
            raise UserError(f"--coordinator {coordinator}: {host} is not known: {error.strerror}") from error
        except OSError as error:
            if time.monotonic() > deadline:
                raise UserError(
                    f"--coordinator {coordinator}: nobody answers there ({error}); start host 0 first, with the same "
                    "--coordinator and --process 0"
                ) from error
            time.sleep(0.2)
