"""The bundled pair, loaded once."""

from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from tokenizers import Tokenizer

import neuroscope_jax.demo
from neuroscope_jax.demo.batches import pool
from neuroscope_jax.demo.make import HELD_OUT_SEED
from neuroscope_jax.demo.residuals import Residuals, collect
from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config
from neuroscope_jax.models.registry import read_config
from neuroscope_jax.models.weights import Params, load_weights

PAIR = Path(neuroscope_jax.demo.__file__).parent / "pair"
UNSEEN_CHATS = 1500


@dataclass(frozen=True)
class Demo:
    """The released model, computed in float32."""

    model: Gemma2
    params: Params
    words: Tokenizer


@pytest.fixture(scope="session")
def pair() -> Path:
    return PAIR


@pytest.fixture(scope="session")
def pair_model(pair: Path) -> Path:
    return pair / "model"


@pytest.fixture(scope="session")
def words(pair_model: Path) -> Tokenizer:
    return Tokenizer.from_file(str(pair_model / "tokenizer.json"))


@pytest.fixture(scope="session")
def demo(pair_model: Path, words: Tokenizer) -> Demo:
    model = Gemma2(Gemma2Config.from_hf(read_config(pair_model)), jnp.float32)
    return Demo(model, load_weights(pair_model, model, jnp.float32), words)


@pytest.fixture(scope="session")
def unseen(demo: Demo) -> Residuals:
    """Residuals of chats with a seed and phrasings that neither model nor SAE was trained on."""
    text = pool(demo.words, HELD_OUT_SEED + 1, UNSEEN_CHATS, held_out=True)
    return collect(demo.model, demo.params, text)


@pytest.fixture(scope="session")
def sae_file(pair: Path) -> Path:
    (file,) = pair.glob("sae/layer_*/width_*/average_l0_*/params.npz")
    return file


@pytest.fixture(scope="session")
def sae(sae_file: Path) -> dict[str, np.ndarray]:
    with np.load(sae_file, allow_pickle=False) as arrays:
        return dict(arrays)
