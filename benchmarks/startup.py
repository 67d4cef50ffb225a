"""Checkpoint to serving engine, timed. As a program: one start, to see whether the compile cache is used."""

import dataclasses
import time
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import psutil

from benchmarks.checkpoint import sae_file
from benchmarks.compilations import Compilations
from benchmarks.processes import answer
from benchmarks.results import Plan, Start
from benchmarks.shapes import SHAPES
from neuroscope_jax import platforms
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.engine.ready import weights_made_ready
from neuroscope_jax.features.filters import FeatureFilter
from neuroscope_jax.features.readout import Tap
from neuroscope_jax.models.registry import build_model, read_config
from neuroscope_jax.models.weights import Params, may_be_compact
from neuroscope_jax.sae.formats import load_sae

TOP_K = 10
FILTER_THRESHOLD = 0.5


@dataclasses.dataclass(frozen=True)
class Started:
    """An engine that serves, and what it was made of."""

    device: jax.Device
    model: nn.Module
    params: Params
    tap: Tap
    engine: JaxEngine
    compilations: Compilations
    times: Start


def start(plan: Plan) -> Started:
    """Load a checkpoint and its SAE and start the engine, as the server does."""
    device = platforms.choose(plan.platform)
    compilations, began = Compilations(), time.perf_counter()
    shape, folder = SHAPES[plan.shape], Path(plan.folder)
    model = build_model(read_config(folder), jnp.dtype(plan.dtype).type)
    sae = load_sae(sae_file(folder), shape.model.hidden_size).screened()
    tap = Tap(sae, FeatureFilter.of(None, sae.d_sae, "frequency", FILTER_THRESHOLD), shape.layer, TOP_K)
    compact = may_be_compact(folder)
    params = weights_made_ready(folder, model, (tap,), shape.context_length, plan.quantization, compact=compact)
    loaded = time.perf_counter()
    engine = serving(model, params, tap, shape.context_length)
    times = Start(
        load_seconds=loaded - began,
        start_seconds=time.perf_counter() - loaded,
        compile_seconds=compilations.seconds,
        compiled=compilations.requested - compilations.reused,
        reused=compilations.reused,
        ready_seconds=time.time() - psutil.Process().create_time(),
    )
    return Started(device, model, params, tap, engine, compilations, times)


def serving(model: nn.Module, params: Params, tap: Tap, context_length: int, *, lookahead: bool = False) -> JaxEngine:
    """An engine that has begun to serve, in which nothing but the limit ends an answer."""
    engine = JaxEngine(model, params, (tap,), (), context_length, queue_size=1, lookahead=lookahead)
    engine.start()
    return engine


if __name__ == "__main__":
    answer(lambda plan: start(plan).times, Plan)
