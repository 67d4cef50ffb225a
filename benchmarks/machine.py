"""What a run was measured on."""

import importlib.metadata
import os
import platform
from pathlib import Path

import psutil


def describe() -> dict[str, str]:
    """Processor, memory and versions, for the head of a report."""
    names = ("jax", "jaxlib", "torch", "transformers", "saklas", "llama_cpp_python", "eai-delphi", "sae-dashboard")
    return {
        "CPU": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "Python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names if _installed(name)},
    }


def _processor() -> str:
    """The processor's own name, and whether it has AVX-512, where the kernel tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    fields = dict(line.split("\t: ", 1) for line in cpuinfo.read_text().splitlines() if "\t: " in line)
    name = next((value for key, value in fields.items() if key.strip() == "model name"), platform.machine())
    units = [unit for flag, unit in (("avx512f", "AVX-512"), ("amx_bf16", "AMX")) if flag in cpuinfo.read_text()]
    return name + (f" with {' and '.join(units)}" if units else "")


def _installed(name: str) -> bool:
    return any(True for _ in importlib.metadata.distributions(name=name))
