"""What a pass needs before its first batch: the pair, cut at the tapped block, and all that decides the result."""

import dataclasses
import datetime
import hashlib
import logging
from pathlib import Path

import flax.linen as nn
import jax
import msgspec

from neuroscope_jax import __version__
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus.documents import Corpus
from neuroscope_jax.corpus.samples import STRIDE
from neuroscope_jax.corpus.step import replicated
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.identity import PairIdentity, identify
from neuroscope_jax.models import hub
from neuroscope_jax.models.build import model_for
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.registry import first_blocks
from neuroscope_jax.models.sharding import Placement, everything_at
from neuroscope_jax.models.weights import Params, load_weights, may_be_compact
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from neuroscope_jax.sae.formats import load_sae

logger = logging.getLogger(__name__)

BOS_RULE = "BOS begins every sample; BOS, control tokens, turn headers and padding are in no statistic and no example"
TOKENS = 2048  # of a batch on a CPU, at most
DIGITS = 16  # of the hash that names a run


@dataclasses.dataclass(frozen=True)
class Pair:
    """A checkpoint and an SAE on this machine, found but not loaded."""

    config: NeuroscopeConfig
    folder: Path
    sae_path: Path
    tokenizer: ChatTokenizer
    model: nn.Module
    dtype: str

    def load(self, mesh: jax.sharding.Mesh) -> tuple[nn.Module, Params, SparseAutoencoder]:
        """The blocks up to the tapped one, their weights and the SAE's encoder, a copy on each device."""
        part = first_blocks(self.model, self.config.target_layer + 1)
        if self.config.model_parallel > 1:
            logger.info("model_parallel is for serving: a corpus pass has a copy on each device, and divides the texts")
        placement, norm = everything_at(replicated(mesh)), self.config.sae_input_norm
        params = weights_of(self.folder, self.model, part, placement)
        return part, params, load_sae(self.sae_path, self.model.config.hidden_size, norm, placement)


def weights_of(folder: Path, model: nn.Module, part: nn.Module, placement: Placement) -> Params:
    """What `part`, the first blocks of `model`, runs."""
    return load_weights(folder, model, model.dtype, part, placement, may_be_compact(folder, TOKENS))


def find(config: NeuroscopeConfig) -> Pair:
    """The pair of a config. Raises UserError for what cannot be had, or has fewer layers."""
    folder = hub.model_folder(config.model_id)
    local = config.sae_local_path
    sae_path = hub.sae_file(config.sae_repo, config.sae_path) if local is None else Path(local)
    tokenizer = ChatTokenizer.load(folder)
    # auto goes by the size in float32: to ask for kernels would have commands that run no model wait for the compiler.
    model, dtype = model_for(folder, config.dtype)
    layers = model.config.num_hidden_layers
    if config.target_layer >= layers:
        raise UserError(
            f"--sae-layer {config.target_layer}: {config.model_id} has layers 0 to {layers - 1}; "
            "choose the layer that the SAE was trained on"
        )
    if tokenizer.vocabulary_size > model.config.vocab_size:
        raise UserError(
            f"{folder}: tokenizer.json has ids up to {tokenizer.vocabulary_size - 1}, "
            f"config.json a vocab_size of {model.config.vocab_size}; the files belong to different models"
        )
    return Pair(config, folder, sae_path, tokenizer, model, dtype)


def identity(pair: Pair, width: int) -> PairIdentity:
    """The pair by the content of its files."""
    return identify(pair.config, pair.folder, pair.sae_path, width)


def provenance(pair: Pair, sae: SparseAutoencoder, corpus: Corpus, samples: int, seed: int) -> Provenance:
    """How the result of a pass of `samples` samples comes about; `run` is a hash of all of it but the date."""
    known = Provenance(
        pair=identity(pair, sae.d_sae),
        model_revision=hub.revision(pair.folder),
        sae_revision=hub.revision(pair.sae_path),
        tokenizer_sha256=hashlib.sha256((pair.folder / "tokenizer.json").read_bytes()).hexdigest(),
        corpus=corpus.name,
        corpus_sha256=corpus.sha256,
        corpus_documents=corpus.documents,
        samples=samples,
        sample_length=STRIDE,
        seed=seed,
        dtype=pair.dtype,
        bos=BOS_RULE,
        sae_input_norm=sae.input_norm,
        made="",
        version=__version__,
        run="",
    )
    run = hashlib.sha256(msgspec.json.encode(known)).hexdigest()[:DIGITS]
    return dataclasses.replace(known, made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), run=run)
