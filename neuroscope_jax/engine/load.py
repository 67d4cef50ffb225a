"""From a config to a running engine, in the order of what fails soonest."""

import dataclasses
import logging
from pathlib import Path

import flax.linen as nn
from jax.sharding import Mesh

from neuroscope_jax import platforms
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.engine.defaults import sampling_defaults
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.engine.ready import weights_made_ready
from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import FeatureStats, load_stats, stats_path
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.features.labels import Labels, load_labels
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.identity import PairIdentity, identify
from neuroscope_jax.models import sharding
from neuroscope_jax.models.build import model_for
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.explained import explained
from neuroscope_jax.models.hub import model_folder, sae_file
from neuroscope_jax.models.weights import may_be_compact
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from neuroscope_jax.sae.formats import load_sae

logger = logging.getLogger(__name__)

SMALLEST_SHARE = 0.9  # of the model's ids that a tokenizer names; embeddings are padded by some hundred at most

NOT_KNOWN = (
    "quantization %s: the SAE was trained on unquantised activations, and there are no statistics of this pair to hold "
    "its features against; `neuroscope_jax quantization report --quantization %s`, with the same --config or --model, "
    "measures what changes"
)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """All the server needs: the started engine and what gives its numbers meaning."""

    config: NeuroscopeConfig  # with `context_length` and `dtype` as they came out
    tokenizer: ChatTokenizer
    labels: Labels
    engine: JaxEngine
    sampling: SamplingOptions  # for what a request leaves open


def load(config: NeuroscopeConfig) -> Loaded:
    """Load a pair and start its engine. Raises UserError where a file is absent, broken or does not fit the others."""
    mesh = sharding.model_mesh(config.model_parallel)
    with sharding.in_use(mesh):
        return _load(config, mesh)


def _load(config: NeuroscopeConfig, mesh: Mesh | None) -> Loaded:
    folder = model_folder(config.model_id)
    sae_path = (
        sae_file(config.sae_repo, config.sae_path) if config.sae_local_path is None else Path(config.sae_local_path)
    )
    tokenizer = ChatTokenizer.load(folder)
    sampling = sampling_defaults(folder)
    if not tokenizer.has_chat_template:
        logger.warning("%s has no chat template; a base model? Chat will be refused: serve the -it model", folder)
    compact = may_be_compact(folder)
    model, dtype = model_for(folder, config.dtype, compact, config.quantization)
    config = dataclasses.replace(config, dtype=dtype, context_length=_context_length(config, model))
    sharding.check_heads(config.model_id, model.config.num_key_value_heads, config.model_parallel)
    sae = _sae(config, sae_path, model, None if mesh is None else sharding.features(mesh))
    pair = identify(config, folder, sae_path, sae.d_sae)
    tap = _tap(config, sae, pair)
    if config.quantization != "none" and not tap.filter.calibrated:
        logger.warning(NOT_KNOWN, config.quantization, config.quantization)
    labels = load_labels(config, sae.d_sae, pair)
    _check_vocabulary(folder, tokenizer.vocabulary_size, model.config.vocab_size)
    with explained(folder, _remedies(config)):
        placement = None if mesh is None else sharding.parameters(mesh)
        params = weights_made_ready(
            folder, model, (tap,), config.context_length, config.quantization, placement, compact
        )
        engine = JaxEngine(
            model, params, (tap,), tokenizer.stop_ids, config.context_length, config.queue_size, config.lookahead
        )
        engine.start()
    return Loaded(config, tokenizer, labels, engine, sampling)


def _check_vocabulary(folder: Path, named: int, ids: int) -> None:
    """Whether a tokenizer that names so many tokens can be that of a model with so many ids."""
    if named > ids:
        raise UserError(
            f"{folder}: tokenizer.json has ids up to {named - 1}, "
            f"config.json a vocab_size of {ids}; the files belong to different models"
        )
    if named < SMALLEST_SHARE * ids:
        logger.warning("%s: tokenizer.json has %d tokens, the model %d: it may be another model's", folder, named, ids)


def _remedies(config: NeuroscopeConfig) -> str:
    """What a user can do about memory that does not suffice, as far as it is not done yet."""
    left = [] if config.quantization != "none" else ["--quantization int8"]
    left += [] if config.dtype == "bfloat16" else ["--dtype bfloat16"]
    if (more := len(platforms.local_devices())) > 1:
        left.append(f"--model-parallel to split it over several of the {more} devices here")
    return ", ".join([*left, "a shorter --context-length"])


def _context_length(config: NeuroscopeConfig, model: nn.Module) -> int:
    most: int = model.config.max_position_embeddings
    if config.context_length > most:
        logger.warning("context length: %d instead of %d, the most this model takes", most, config.context_length)
    return min(config.context_length, most)


def _sae(
    config: NeuroscopeConfig, sae_path: Path, model: nn.Module, placement: sharding.Placement | None
) -> SparseAutoencoder:
    layers = model.config.num_hidden_layers
    if config.target_layer >= layers:
        raise UserError(
            f"--sae-layer {config.target_layer}: {config.model_id} has layers 0 to {layers - 1}; "
            "choose the layer that the SAE was trained on"
        )
    sae = load_sae(sae_path, model.config.hidden_size, config.sae_input_norm, placement)
    if config.top_k > sae.d_sae:
        raise UserError(f"--top-k {config.top_k}: this SAE has {sae.d_sae} features")
    return sae


def _tap(config: NeuroscopeConfig, sae: SparseAutoencoder, pair: PairIdentity) -> Tap:
    stats = _stats(config, sae, pair)
    feature_filter = FeatureFilter.of(stats, sae.d_sae, config.feature_filter, config.filter_threshold)
    if stats is not None:
        hidden = int(feature_filter.suppressed.sum())
        logger.info("feature filter: %s, %d of %d features suppressed", config.feature_filter, hidden, sae.d_sae)
    return Tap(sae=sae.screened(), filter=feature_filter, layer=config.target_layer, top_k=config.top_k)


def _stats(config: NeuroscopeConfig, sae: SparseAutoencoder, pair: PairIdentity) -> FeatureStats | None:
    """The pair's statistics where there are any; says which."""
    path = stats_path(config)
    if config.calibration_path is None and not path.exists():
        logger.info("calibration: none for this pair (no %s): no surprise in events, nothing is filtered", path)
        return None
    try:
        stats, provenance = load_stats(path, pair)
    except UserError as error:
        if config.calibration_path is not None:
            raise
        # Nobody asked for this file: a base model and its tuned versions share its name.
        logger.warning("calibration: left aside: %s", error)
        return None
    made_with = provenance.sae_input_norm
    if made_with != sae.input_norm:
        reason = f"made with input norm {made_with}, in use is {sae.input_norm}"
        logger.warning("calibration: %s is left aside (%s): no surprise in events, nothing is filtered", path, reason)
        return None
    logger.info("calibration: %s, %d tokens", path, stats.tokens)
    return stats
