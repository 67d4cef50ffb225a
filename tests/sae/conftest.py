"""A small synthetic Gemma Scope file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

D_IN, D_SAE = 64, 256


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """The five arrays of a params.npz, thresholds high enough that few features fire."""
    rng = np.random.default_rng(0)
    W_enc = rng.standard_normal((D_IN, D_SAE)).astype(np.float32)
    return {
        "W_enc": W_enc,
        "W_dec": np.ascontiguousarray(W_enc.T),
        "b_enc": rng.standard_normal(D_SAE).astype(np.float32),
        "b_dec": rng.standard_normal(D_IN).astype(np.float32),
        "threshold": rng.uniform(4, 12, D_SAE).astype(np.float32),
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Save arrays as a params.npz and give its path."""

    def save(**arrays: np.ndarray) -> Path:
        path = tmp_path / "params.npz"
        np.savez(path, **arrays)
        return path

    return save
