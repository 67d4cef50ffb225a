"""The most memory this process has held."""

import contextlib
import resource
import sys
from pathlib import Path

import jax


def peak_bytes(device: jax.Device | None = None) -> int:
    """On an accelerator the device's memory, otherwise the process's resident memory."""
    if device is not None and (stats := device.memory_stats()):
        return int(stats["peak_bytes_in_use"])
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """Let the peak of resident memory start again from what is held now. Without effect where the kernel cannot."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
