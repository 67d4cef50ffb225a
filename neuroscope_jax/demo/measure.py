"""What a released SAE does on residuals: L0, fraction of variance unexplained, features alive."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

CHUNK = 8192


@dataclass(frozen=True)
class Measured:
    """L0 is the mean number of active features a token; `alive` counts features that fired at least once."""

    tokens: int
    l0: float
    fvu: float
    alive: int


def activations(sae: Mapping[str, np.ndarray], x: Float[np.ndarray, "N D"]) -> Iterator[Float[np.ndarray, "n E"]]:
    """Feature activations of raw residuals, a chunk of tokens at a time."""
    for at in range(0, len(x), CHUNK):
        pre = x[at : at + CHUNK] @ sae["W_enc"] + sae["b_enc"]
        yield pre * (pre > sae["threshold"])


def measure(sae: Mapping[str, np.ndarray], x: Float[np.ndarray, "N D"]) -> Measured:
    """Figures over all rows of `x`."""
    active, unexplained, fired = 0, 0.0, np.zeros(len(sae["threshold"]), bool)
    for i, acts in enumerate(activations(sae, x)):
        error = x[i * CHUNK : i * CHUNK + len(acts)] - acts @ sae["W_dec"] - sae["b_dec"]
        active += int(np.count_nonzero(acts))
        unexplained += float(np.sum(np.square(error, dtype=np.float64)))
        fired |= (acts > 0).any(0)
    variance = float(np.sum(np.square(x - x.mean(0), dtype=np.float64)))
    return Measured(len(x), active / len(x), unexplained / variance, int(fired.sum()))
