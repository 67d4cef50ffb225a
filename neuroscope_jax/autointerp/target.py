"""The pair whose features are labelled, found on this machine but not loaded."""

import dataclasses
from pathlib import Path

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.features.labels import labels_path
from neuroscope_jax.features.selection import selected
from neuroscope_jax.features.width import width_of
from neuroscope_jax.identity import PairIdentity
from neuroscope_jax.models.chat import ChatTokenizer


@dataclasses.dataclass(frozen=True)
class Target:
    """A model and an SAE, and where their labels and the answers behind them are kept."""

    pair: setup.Pair
    identity: PairIdentity

    @classmethod
    def find(cls, config: NeuroscopeConfig) -> "Target":
        """Raises UserError where the pair cannot be had."""
        pair = setup.find(config)
        return cls(pair, setup.identity(pair, width_of(config)))

    @property
    def config(self) -> NeuroscopeConfig:
        return self.pair.config

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self.pair.tokenizer

    @property
    def labels_path(self) -> Path:
        """Where the loader looks for labels made here."""
        return labels_path(self.config, "autointerp")

    @property
    def journal_path(self) -> Path:
        """Every answer about the pair's features, whichever label file it went to."""
        path = self.labels_path
        return path.with_name(f"{path.stem.removesuffix('_autointerp')}_answers.jsonl")

    def features(self, text: str | None) -> list[int]:
        """Those that --features names, else all. Raises UsageError."""
        width = self.identity.width
        return list(range(width)) if text is None else selected(text, width)
