"""Made-up activations: sparse, skewed, with ties, a dead feature, a dense one and tokens that do not count."""

import numpy as np
import pytest

from neuroscope_jax.corpus.samples import Rows

FEATURES, LENGTH, BATCHES, ROWS = 150, 24, 7, 4


@pytest.fixture(scope="session")
def made_up() -> list[tuple[np.ndarray, Rows]]:
    """Batches of (activations [B, T, E], rows): documents of one or several samples of 23 tokens each."""
    rng = np.random.default_rng(0)
    document = np.sort(rng.integers(0, 20, BATCHES * ROWS))
    chunk = np.array([np.sum(document[:i] == d) for i, d in enumerate(document)])
    batches = []
    for numbers in rng.permutation(BATCHES * ROWS).reshape(BATCHES, ROWS):
        activations = rng.gamma(2.0, 6.0, (ROWS, LENGTH, FEATURES)).astype(np.float32)
        activations = np.round(activations, 1)  # ties
        density = rng.permuted(np.geomspace(0.002, 0.5, FEATURES))
        activations[rng.random(activations.shape) > density] = 0
        activations[..., 0] = 0  # dead
        activations[..., 1] = 5 + rng.random((ROWS, LENGTH))  # always on
        counted = rng.random((ROWS, LENGTH)) > 0.2
        counted[:, 0] = False
        slot = np.where(numbers % 3 == 0, numbers // 3, -1)
        rows = Rows(
            ids=rng.integers(5, 99, (ROWS, LENGTH)).astype(np.int32),
            counted=counted,
            document=document[numbers].astype(np.int32),
            offset=(chunk[numbers] * (LENGTH - 1)).astype(np.int32),
            slot=slot.astype(np.int32),
            start=rng.integers(1, 5, ROWS).astype(np.int32),
        )
        batches.append((activations, rows))
    return batches
