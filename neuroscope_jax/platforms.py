"""Which of JAX's platforms computes, chosen before JAX starts any of them, and where compiled code is kept."""

import importlib.util
import logging
import os
import tempfile
from typing import Literal

import jax
import jax.numpy as jnp

from neuroscope_jax.config import Platform, cache_folder
from neuroscope_jax.errors import UserError

logger = logging.getLogger(__name__)

Kind = Literal["cpu", "gpu", "tpu"]
PLUGINS: dict[str, tuple[str, ...]] = {
    "gpu": ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin"),
    "tpu": ("libtpu",),
}
INSTALL = {"gpu": "pip install -e '.[cuda]'", "tpu": "pip install -e '.[tpu]'"}
METAL = (
    "platform metal: JAX has only jax-metal there, an experimental plugin that is no longer maintained and lacks "
    "operations this program needs; use --platform cpu, which runs natively on Apple silicon"
)


def parse(name: str) -> Platform:
    """`auto`, `cpu`, `gpu` or `tpu` from what a person types (`cuda` is a gpu). Raises UserError for anything else."""
    match name.lower():
        case "auto" | "cpu" | "gpu" | "tpu" as known:
            return known
        case "cuda":
            return "gpu"
        case "metal" | "mps":
            raise UserError(METAL)
    raise UserError(f"platform {name!r}: expected one of auto, cpu, gpu, tpu")


def choose(platform: Platform) -> jax.Device:
    """Make one device JAX's default: of the platform asked for, or with `auto` of CUDA, then TPU, then CPU.

    Call it before anything touches a device. Raises UserError where the platform asked for is absent.
    """
    # JAX would otherwise take three quarters of a GPU's memory at once, of which other programs may be in need.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    use_compile_cache()
    wanted: tuple[Kind, ...] = ("gpu", "tpu", "cpu") if platform == "auto" else (platform,)
    for kind in wanted:
        if kind == "cpu":
            _set("jax_platforms", "cpu")  # neither wakes nor waits for an accelerator
        if (kind == "cpu" or installed(kind)) and (found := devices(kind)):
            if jax.devices()[0] != found[0]:
                _set("jax_default_device", found[0])
            return found[0]
    raise UserError(_absent(wanted[0]))


def installed(kind: Kind) -> bool:
    """True where a JAX plugin for `gpu` or `tpu` is installed, whether or not the hardware is there."""
    return any(importlib.util.find_spec(name) is not None for name in PLUGINS[kind])


def devices(kind: Kind) -> list[jax.Device]:
    """This machine's devices of one kind, none where JAX cannot start that platform."""
    try:
        return jax.devices(kind)
    except RuntimeError:
        return []


def local_devices() -> list[jax.Device]:
    """The devices of this process that are of the platform in use."""
    return list(jax.local_devices(backend=next(iter(_in_use())).platform))


def free_bytes() -> int | None:
    """Of what lies evenly on the devices in use, how much they still take; None where they do not say, as CPUs."""
    known = [stats for device in _in_use() if (stats := device.memory_stats())]
    return len(known) * min(stats["bytes_limit"] - stats["bytes_in_use"] for stats in known) if known else None


def _in_use() -> set[jax.Device]:
    """The device that computes; under a mesh all of its devices."""
    used: set[jax.Device] = jnp.empty(()).devices()
    return used


def describe(device: jax.Device, count: int = 1) -> str:
    """Devices in the words of the start-up lines: `gpu (NVIDIA H200)`, `2 x gpu (NVIDIA H200)`, `cpu (8 cores)`."""
    detail = f"{os.cpu_count()} cores" if device.platform == "cpu" else device.device_kind
    return f"{f'{count} x ' if count > 1 else ''}{device.platform} ({detail})"


def use_compile_cache() -> None:
    """Keep compiled programs, so that the next start need not compile them again: under the cache folder, or where
    JAX's own variable says.
    """
    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        folder = cache_folder() / "xla"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            logger.warning("compiled code is not kept: %s cannot be written: %s", folder, error.strerror)
            return
        _set("jax_compilation_cache_dir", str(folder))
    _set("jax_persistent_cache_min_compile_time_secs", 0.0)
    _set("jax_persistent_cache_min_entry_size_bytes", -1)


def _set(option: str, value: object) -> None:
    jax.config.update(option, value)


def _absent(kind: Kind) -> str:
    here = ", ".join(k for k in ("gpu", "tpu", "cpu") if devices(k)) or "nothing"
    if kind in INSTALL and not installed(kind):
        return f"platform {kind}: JAX's plugin for it is not installed; run {INSTALL[kind]}, or use one of: {here}"
    return f"platform {kind}: no such device was found; found {here}; check the driver, or use --platform auto"
