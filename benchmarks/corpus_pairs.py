"""What the corpus benchmark passes over: a checkpoint, an SAE, and samples of token ids."""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Int

from benchmarks.checkpoint import checkpoint, sae_file
from benchmarks.prompts import BOS, FIRST_ID
from benchmarks.shapes import GEMMA_2_2B, SHAPES, TINY
from neuroscope_jax.config import CorpusSource, load_preset
from neuroscope_jax.corpus.mix import open_folder
from neuroscope_jax.corpus.samples import LENGTH, STRIDE
from neuroscope_jax.models import hub
from neuroscope_jax.models.chat import ChatTokenizer

DEMO = "demo"
TOKENS = {GEMMA_2_2B.name: 4096, DEMO: 200_000, TINY.name: 4096}  # of a pass where no other number is asked for
LOT = 32  # the number of samples is a multiple of it, so that halves of it are whole batches for every program


@dataclasses.dataclass(frozen=True)
class CorpusPair:
    """Files and samples; the tapped layer is the checkpoint's, the SAE reads it."""

    folder: Path
    sae: Path
    layer: int
    samples: Int[np.ndarray, "n 128"]  # BOS first in each


def corpus_pair(name: str, tokens: int | None) -> CorpusPair:
    """The pair of that name with at least `tokens` tokens of samples. Makes a random checkpoint where it is absent."""
    count = -(-(tokens or TOKENS[name]) // (LENGTH * LOT)) * LOT
    if name == DEMO:
        config = load_preset(DEMO)
        folder = hub.model_folder(config.model_id)
        sae = hub.sae_file(config.sae_repo, config.sae_path)
        return CorpusPair(folder, sae, config.target_layer, _with_bos(_demo_ids(folder, count)))
    shape = SHAPES[name]
    folder = checkpoint(shape)
    ids = np.random.default_rng(count).integers(FIRST_ID, shape.model.vocab_size, (count, STRIDE))
    return CorpusPair(folder, sae_file(folder), shape.layer, _with_bos(ids))


def _demo_ids(folder: Path, count: int) -> Int[np.ndarray, "n 127"]:
    """The demo corpus in a row, over again where it is too short."""
    tokenizer = ChatTokenizer.load(folder)
    texts = [document.text for document in open_folder(CorpusSource(path=DEMO)).read()]
    return np.resize(np.concatenate(tokenizer.encode_documents(texts)), (count, STRIDE))


def _with_bos(ids: Int[np.ndarray, "n 127"]) -> Int[np.ndarray, "n 128"]:
    return np.pad(ids, ((0, 0), (1, 0)), constant_values=BOS).astype(np.int32)
