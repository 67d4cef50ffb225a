"""Weights and the programs that take them, made ready side by side: to compile a step the shapes of weights suffice."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flax.linen as nn

from neuroscope_jax.config import Quantization
from neuroscope_jax.engine.kept import KeptCaches
from neuroscope_jax.engine.requests import GenerationRequest, SamplingOptions
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.engine.sequence import Programs, TokenSequence
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.models.quantized_cache import served_shapes, served_weights
from neuroscope_jax.models.sharding import Placement
from neuroscope_jax.models.weights import Params

WARM_UP = GenerationRequest((0, 0), 2, SamplingOptions(temperature=0))  # runs the steps of short prompts


def weights_made_ready(
    folder: Path,
    model: nn.Module,
    taps: tuple[Tap, ...],
    context_length: int,
    quantization: Quantization = "none",
    placement: Placement | None = None,
    compact: bool = False,
) -> Params:
    """`served_weights`, and meanwhile the steps are compiled that an engine of such a context begins with.

    What is amiss in the headers of files is told at once; what is found in the tensors, once the steps are compiled.
    """
    shapes = served_shapes(folder, model, quantization, placement, compact)
    with ThreadPoolExecutor(1) as pool:
        weights = pool.submit(served_weights, folder, model, quantization, placement, compact)
        compile_steps(Programs(model, shapes, taps, context_length))
    return weights.result()


def compile_steps(programs: Programs) -> None:
    """Compile the steps of short prompts, as an engine does that starts; of the weights these are shapes."""
    sampling = Sampling.of(WARM_UP.sampling, ())
    TokenSequence(programs, KeptCaches(), WARM_UP.prompt_ids, sampling).compile(WARM_UP.max_tokens)
