"""Statistics of stored activations, worked out one feature at a time in float64."""

import numpy as np

from neuroscope_jax.features.calibration import BINS, FeatureStats, Provenance
from neuroscope_jax.identity import PairIdentity

TOKENS, WIDTH = 400, 48
PAIR = PairIdentity("org/model-it", "a" * 64, "org/sae/layer_3/width_48/average_l0_12", "b" * 64, WIDTH, 3)
PROVENANCE = Provenance(
    pair=PAIR,
    model_revision="0123abcd",
    sae_revision=None,
    tokenizer_sha256="c" * 64,
    corpus="texts/",
    corpus_sha256="c" * 64,
    corpus_documents=7,
    samples=10,
    sample_length=127,
    seed=0,
    dtype="float32",
    bos="BOS is fed in and left out of every statistic",
    sae_input_norm="none",
    made="2026-01-02T03:04:05+00:00",
    version="0.1.0",
    run="run-1",
)


def activations(seed: int = 0) -> np.ndarray:
    """float32 [TOKENS, WIDTH]; feature 0 never fires, 1 once, 2 twice, 3 always, 4 at one strength only."""
    rng = np.random.default_rng(seed)
    fires = rng.random((TOKENS, WIDTH)) < rng.uniform(0, 0.6, WIDTH)
    fires[:, :4] = np.arange(TOKENS)[:, None] < [0, 1, 2, TOKENS]
    strengths = rng.lognormal(rng.uniform(-1, 6, WIDTH), 0.5, (TOKENS, WIDTH))
    strengths[:, 4] = 5
    return np.where(fires, strengths, 0).astype(np.float32)


def measured(found: np.ndarray) -> FeatureStats:
    """What a calibration over these activations [tokens, E] must come to."""
    firings = [column[column > 0].astype(np.float64) for column in found.T]
    return FeatureStats(
        tokens=len(found),
        count=np.array([len(f) for f in firings]),
        mean_activation=np.array([f.mean() if len(f) else 0 for f in firings]),
        activation_variance=np.array([f.var() if len(f) else 0 for f in firings]),
        max_activation=np.array([f.max(initial=0) for f in firings]),
        histogram=np.array([_histogram(f) for f in firings]),
    )


def _histogram(firings: np.ndarray) -> list[int]:
    """By the definition in words: half an octave a bin, the first up to 2^-3, the last from 2^12."""
    bins = [int(np.clip(np.floor(2 * np.log2(value)) + 7, 0, BINS - 1)) for value in firings]
    return np.bincount(bins, minlength=BINS).tolist()
