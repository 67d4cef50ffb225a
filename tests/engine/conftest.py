"""A tiny random model with two taps, and an engine with small buckets so that every boundary is crossed."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from neuroscope_jax.engine import chunks, sequence
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from tests.random_params import random_params

VOCAB, D_SAE, CONTEXT = 97, 64, 60

CONFIG = Gemma2Config(
    vocab_size=VOCAB,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=6,
    query_pre_attn_scalar=6,
    sliding_window=8,
    max_position_embeddings=64,
)


@pytest.fixture(scope="session")
def model() -> Gemma2:
    return Gemma2(CONFIG, jnp.float32)


@pytest.fixture(scope="session")
def params(model: Gemma2) -> dict[str, Any]:
    return random_params(model)


@pytest.fixture(scope="session")
def taps() -> tuple[Tap, ...]:
    def tap(layer: int) -> Tap:
        rows = jax.random.normal(jax.random.key(layer), (D_SAE, CONFIG.hidden_size))
        sae = SparseAutoencoder(rows, jnp.zeros(D_SAE), jnp.full(D_SAE, 3.0), jnp.float32(1))
        return Tap(sae, FeatureFilter.of(None, D_SAE, "frequency", 0.5), layer=layer, top_k=5)

    return tap(1), tap(2)


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BUCKETS", (4, 8))
    monkeypatch.setattr(sequence, "CACHE_BUCKETS", (16, 32))


@pytest.fixture
def make_engine(model, params, taps, small_buckets) -> Iterator[Callable[..., JaxEngine]]:
    made: list[JaxEngine] = []

    def make(
        stop_ids: tuple[int, ...] = (),
        queue_size: int = 4,
        start: bool = True,
        lookahead: bool = False,
        context: int = CONTEXT,
    ) -> JaxEngine:
        engine = JaxEngine(model, params, taps, stop_ids, context, queue_size, lookahead)
        made.append(engine)
        if start:
            engine.start()
        return engine

    yield make
    for engine in made:
        engine.close()
