"""From a config to a running engine, in the order of what fails soonest."""

import dataclasses
import logging
import math
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import psutil

from neuroscope_jax.config import DType, NeuroscopeConfig
from neuroscope_jax.engine.defaults import sampling_defaults
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import FeatureStats, load_stats, stats_path
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.features.labels import Labels, load_labels
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import model_folder, sae_file
from neuroscope_jax.models.registry import build_model, read_config
from neuroscope_jax.models.weights import expected_shapes, load_weights
from neuroscope_jax.sae.formats import load_sae

logger = logging.getLogger(__name__)

MEMORY_SHARE = 0.7  # of physical memory that float32 weights may take before bfloat16 is chosen


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
    folder = model_folder(config.model_id)
    sae_path = (
        sae_file(config.sae_repo, config.sae_path) if config.sae_local_path is None else Path(config.sae_local_path)
    )
    tokenizer = ChatTokenizer.load(folder)
    sampling = sampling_defaults(folder)
    if not tokenizer.has_chat_template:
        logger.warning("%s has no chat template; a base model? Chat will be refused: serve the -it model", folder)
    model, dtype = _model(folder, config.dtype)
    config = dataclasses.replace(config, dtype=dtype, context_length=_context_length(config, model))
    tap = _tap(config, sae_path, model)
    labels = load_labels(config, tap.sae.d_sae)
    if tokenizer.vocabulary_size > model.config.vocab_size:
        raise UserError(
            f"{folder}: tokenizer.json has ids up to {tokenizer.vocabulary_size - 1}, "
            f"config.json a vocab_size of {model.config.vocab_size}; the files belong to different models"
        )
    params = load_weights(folder, model, model.dtype)
    engine = JaxEngine(model, params, (tap,), tokenizer.stop_ids, config.context_length, config.queue_size)
    _start(engine, folder)
    return Loaded(config, tokenizer, labels, engine, sampling)


def _start(engine: JaxEngine, folder: Path) -> None:
    try:
        engine.start()
    except FloatingPointError as error:
        raise UserError(f"{folder}: {error}; the weights are damaged, or config.json is another model's") from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(f"{folder}: not enough memory; try --dtype bfloat16 or a shorter --context-length") from error


def _model(folder: Path, dtype: DType) -> tuple[nn.Module, DType]:
    hf_config = read_config(folder)
    if dtype == "auto":
        dtype = _choose_dtype(build_model(hf_config, jnp.float32))
    return build_model(hf_config, jnp.dtype(dtype).type), dtype


def _choose_dtype(model: nn.Module) -> DType:
    """bfloat16 on accelerators; on CPU float32, the faster form there, unless it would crowd the memory."""
    if jax.default_backend() != "cpu":
        return "bfloat16"
    needed = 4 * sum(math.prod(shape) for shape in expected_shapes(model).values())
    memory = _memory()
    if needed <= MEMORY_SHARE * memory:
        return "float32"
    logger.info(
        "dtype: bfloat16, because float32 weights (%.1f GB) crowd %.1f GB of memory", needed / 1e9, memory / 1e9
    )
    return "bfloat16"


def _memory() -> int:
    """Bytes this process may use: the machine's, or what its container is allowed."""
    limit = Path("/sys/fs/cgroup/memory.max")
    allowed = limit.read_text().strip() if limit.is_file() else "max"
    total = int(psutil.virtual_memory().total)
    return min(total, int(allowed)) if allowed.isdigit() else total


def _context_length(config: NeuroscopeConfig, model: nn.Module) -> int:
    most: int = model.config.max_position_embeddings
    if config.context_length > most:
        logger.warning("context length: %d instead of %d, the most this model takes", most, config.context_length)
    return min(config.context_length, most)


def _tap(config: NeuroscopeConfig, sae_path: Path, model: nn.Module) -> Tap:
    layers = model.config.num_hidden_layers
    if config.target_layer >= layers:
        raise UserError(
            f"--sae-layer {config.target_layer}: {config.model_id} has layers 0 to {layers - 1}; "
            "choose the layer that the SAE was trained on"
        )
    sae = load_sae(sae_path, model.config.hidden_size, config.sae_input_norm)
    if config.top_k > sae.d_sae:
        raise UserError(f"--top-k {config.top_k}: this SAE has {sae.d_sae} features")
    stats = _stats(config, sae.d_sae)
    feature_filter = FeatureFilter.of(stats, sae.d_sae, config.feature_filter, config.filter_threshold)
    return Tap(sae=sae, filter=feature_filter, layer=config.target_layer, top_k=config.top_k)


def _stats(config: NeuroscopeConfig, width: int) -> FeatureStats | None:
    path = stats_path(config)
    if path.is_file() or config.calibration_path is not None:
        return load_stats(path, config.sae_id, width)
    if config.feature_filter != "none":
        logger.info("no calibration data for this pair: the feature filter (%s) filters nothing", config.feature_filter)
    return None
