"""What a pass found, on the host: the states of its devices and of its hosts, joined into one."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float, Int, UInt

from neuroscope_jax.corpus.ranked import Ranked
from neuroscope_jax.corpus.state import CorpusState
from neuroscope_jax.features.calibration import FeatureStats
from neuroscope_jax.pytree import tree_map


@dataclasses.dataclass(frozen=True)
class Entries:
    """K examples of each feature by rising (key, document, offset), as in `ranked.Ranked`, but in NumPy."""

    key: UInt[np.ndarray, "E K"]
    document: Int[np.ndarray, "E K"]
    offset: Int[np.ndarray, "E K"]
    activation: Float[np.ndarray, "E K"]  # 0 in an empty place


@dataclasses.dataclass(frozen=True)
class Collected:
    """Statistics and examples of every feature over `tokens` tokens."""

    tokens: int
    count: Int[np.ndarray, " E"]
    mean: Float[np.ndarray, " E"]  # float64, over the firings
    m2: Float[np.ndarray, " E"]  # float64, Σ (activation - mean)² over the firings
    histogram: Int[np.ndarray, "E bins"]
    top: Entries
    drawn: Entries
    windows: UInt[np.ndarray, "W words"]

    def stats(self) -> FeatureStats:
        """The statistics alone, as they are saved."""
        return FeatureStats(
            tokens=self.tokens,
            count=self.count,
            mean_activation=self.mean,
            # Of firings that are all alike, rounding can leave m2 a hair below 0.
            activation_variance=np.maximum(self.m2, 0) / np.maximum(self.count, 1),
            max_activation=self.top.activation[:, 0].astype(np.float64),
            histogram=self.histogram,
        )


def collect(states: CorpusState) -> Collected:
    """The states of all devices, joined; every leaf of `states` has the devices as its leading axis."""
    states = jax.device_get(states)
    return joined([_one(tree_map(lambda x, i=i: x[i], states)) for i in range(len(states.tokens))])


def joined(parts: Sequence[Collected]) -> Collected:
    """Several passes over different samples as one pass over them all."""
    return functools.reduce(_two, parts)


def _one(state: CorpusState) -> Collected:
    m = state.moments
    return Collected(
        tokens=int(state.tokens),
        count=np.asarray(m.count, np.int64),
        mean=np.asarray(m.mean, np.float64) + m.mean_low,
        m2=np.asarray(m.m2, np.float64) + m.m2_low,
        histogram=np.asarray(state.histogram, np.int64),
        top=_entries(state.top),
        drawn=_entries(state.drawn),
        windows=np.asarray(state.windows),
    )


def _entries(ranked: Ranked) -> Entries:
    return Entries(*map(np.asarray, (ranked.key, ranked.document, ranked.offset, ranked.activation)))


def _two(a: Collected, b: Collected) -> Collected:
    count = a.count + b.count
    share = b.count / np.maximum(count, 1)
    delta = np.where(b.count > 0, b.mean - a.mean, 0.0)
    return Collected(
        tokens=a.tokens + b.tokens,
        count=count,
        mean=a.mean + delta * share,
        m2=a.m2 + b.m2 + delta**2 * share * a.count,
        histogram=a.histogram + b.histogram,
        top=_first_of(a.top, b.top),
        drawn=_first_of(a.drawn, b.drawn),
        windows=a.windows | b.windows,
    )


def _first_of(a: Entries, b: Entries) -> Entries:
    names = [field.name for field in dataclasses.fields(Entries)]
    both = {name: np.concatenate([getattr(a, name), getattr(b, name)], 1) for name in names}
    order = np.lexsort((both["offset"], both["document"], both["key"]), axis=1)[:, : a.key.shape[1]]
    return Entries(**{name: np.take_along_axis(column, order, 1) for name, column in both.items()})
