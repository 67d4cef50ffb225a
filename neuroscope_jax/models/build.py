"""From a checkpoint folder to the module that runs it, in a dtype that suits the machine."""

import logging
import math
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import psutil

from neuroscope_jax.config import DType, Quantization
from neuroscope_jax.models.registry import build_model, read_config
from neuroscope_jax.models.weights import expected_shapes

logger = logging.getLogger(__name__)

MEMORY_SHARE = 0.7  # of physical memory that float32 weights may take before bfloat16 is chosen


def model_for(
    folder: Path, dtype: DType, compact: bool = False, quantization: Quantization = "none"
) -> tuple[nn.Module, DType]:
    """The module of a checkpoint and the dtype it runs in, chosen where `dtype` is auto.

    `compact`: its weights will stay bfloat16, so that float32 takes no more memory; nor does it for quantised ones.
    """
    hf_config = read_config(folder)
    if dtype == "auto":
        as_small = compact or (quantization != "none" and jax.default_backend() == "cpu")
        dtype = "float32" if as_small else _choose_dtype(build_model(hf_config, jnp.float32))
    return build_model(hf_config, jnp.dtype(dtype).type), dtype


def _choose_dtype(model: nn.Module) -> DType:
    """bfloat16 on accelerators; on CPU float32, which is exact, unless it would crowd the memory."""
    if jax.default_backend() != "cpu":
        return "bfloat16"
    needed = 4 * sum(math.prod(shape) for shape in expected_shapes(model).values())
    memory = _memory()
    if needed <= MEMORY_SHARE * memory:
        return "float32"
    logger.info(
        "dtype: bfloat16, because float32 weights (%.1f GB) crowd %.1f GB of memory", needed / 1e9, memory / 1e9
    )
    return "bfloat16"


def _memory() -> int:
    """Bytes this process may use: the machine's, or what its container is allowed."""
    limit = Path("/sys/fs/cgroup/memory.max")
    allowed = limit.read_text().strip() if limit.is_file() else "max"
    total = int(psutil.virtual_memory().total)
    return min(total, int(allowed)) if allowed.isdigit() else total
