"""Serves a pair split over each of some numbers of devices and prints what came out as JSON.

A program of its own, because a process has as many CPU devices as XLA_FLAGS said when JAX started:
`python -m tests.engine.split_over_devices FOLDER 1 2 8`.
"""

import contextlib
import dataclasses
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.engine import chunks, sequence, steps
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.engine.load import load
from neuroscope_jax.engine.requests import GenerationRequest
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.models import sharding
from tests.engine.collect import GREEDY, Collector, loaded_and_compiled

LAYER, PROMPT, TOKENS = 1, 11, 40  # together they outgrow the first cache bucket below
COMPILED = "/jax/core/compile/backend_compile_duration"
COLLECTIVE = re.compile(r"= (.*) (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")


def main(folder: Path, counts: list[int]) -> None:
    chunks.CHUNK_BUCKETS, sequence.CACHE_BUCKETS, sequence.ROOM_FOR_ANSWER = (16,), (32, 64), 8
    print(json.dumps({count: served(folder, count) for count in counts}))


def served(folder: Path, count: int) -> dict[str, Any]:
    """One number of devices: the answer, what it took to compute, and where things lie."""
    config = NeuroscopeConfig(
        model_id=str(folder),
        sae_local_path=str(folder / "params.npz"),
        target_layer=LAYER,
        dtype="float32",
        context_length=64,
        model_parallel=count,
    )
    loaded, *made_ready = loaded_and_compiled(config)
    compiled: list[str] = []
    answer = answered(loaded.engine)
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    again = answered(loaded.engine)
    recompiled = compiled.count(COMPILED)
    loaded.engine.close()
    ahead = load(dataclasses.replace(config, lookahead=True))
    proposed: list[int] = []
    with watched(proposed):
        looked_up = told(answered(ahead.engine))
    ahead.engine.close()
    return {
        "answer": told(answer),
        "again": told(again),
        "made_ready": made_ready,
        "recompiled": recompiled,
        "looked_up": looked_up,
        "proposed": proposed,
        "weight_bytes": held(loaded.engine._programs.params),
        "sae_bytes": held(loaded.engine._programs.taps[0].sae),
        "dtypes": sorted({str(leaf.dtype) for leaf in jax.tree.leaves(loaded.engine._programs.params)}),
        **program(loaded.engine),
    }


@contextlib.contextmanager
def watched(proposed: list[int]) -> Iterator[None]:
    """How many ids each verify_step is given."""
    verify = steps.verify_step

    def verifying(*args: Any) -> Any:
        proposed.append(args[4].size)
        return verify(*args)

    steps.verify_step = verifying  # type: ignore[assignment]
    yield
    steps.verify_step = verify


def answered(engine: JaxEngine) -> Collector:
    prompt = np.random.default_rng(3).integers(6, 360, PROMPT).tolist()
    collector = Collector()
    engine.submit(GenerationRequest(tuple(prompt), TOKENS, GREEDY, score_prompt=True), collector)
    return collector.wait()


def told(collector: Collector) -> dict[str, Any]:
    (scored,), tokens = collector.scored, collector.tokens
    features = [token.features[0] for token in tokens]
    return {
        "ids": [token.id for token in tokens],
        "logprobs": [token.logprob for token in tokens],
        "prompt_logprobs": scored.logprobs,
        "indices": [each.indices for each in features],
        "activations": [each.activations for each in features],
    }


def held(tree: Any) -> dict[str, Any]:
    """Bytes of a tree in all, and on each device."""
    shards = [shard for leaf in jax.tree.leaves(tree) for shard in leaf.addressable_shards]
    devices = sorted({shard.device.id for shard in shards})
    on_each = [sum(shard.data.nbytes for shard in shards if shard.device.id == device) for device in devices]
    return {"all": sum(leaf.nbytes for leaf in jax.tree.leaves(tree)), "on_each": on_each}


def program(engine: JaxEngine) -> dict[str, Any]:
    """Of the decode step as compiled for these devices: what it exchanges, and what becomes of the cache."""
    with sharding.in_use(engine._mesh):
        model, params, taps = engine._programs.model, engine._programs.params, engine._programs.taps
        sampling = Sampling.of(GREEDY, [1])
        ids, cache = jnp.ones((1, 16), jnp.int32), steps.empty_cache(model, 32)
        state, _ = steps.prefill_step(model, params, taps, cache, ids, jnp.int32(0), jnp.int32(9), sampling)
        compiled = steps.decode_step.lower(model, params, taps, state, sampling).compile()
        after, _ = steps.decode_step(model, params, taps, state, sampling)
    before, now = (jax.tree.leaves(each) for each in (state, after))
    return {
        "exchanged": [[kind, count] for kind, count in exchanged(compiled.as_text())],
        "smallest_part": min(
            shard.data.size for leaf in jax.tree.leaves(params) for shard in leaf.addressable_shards if leaf.ndim == 2
        ),
        "custom_calls": sorted(set(re.findall(r'custom_call_target="([^"]+)"', compiled.as_text()))),
        "donated": all(leaf.is_deleted() for leaf in jax.tree.leaves(state.cache)),
        "stays": [a.sharding for a in before] == [b.sharding for b in now],
        "cache_share": {str(leaf.sharding.shard_shape(leaf.shape)[2]) for leaf in jax.tree.leaves(after.cache)}.pop(),
    }


def exchanged(text: str) -> Iterator[tuple[str, int]]:
    """Kind and number of elements of everything that devices exchange in a compiled program."""
    for line in text.splitlines():
        if found := COLLECTIVE.search(line):
            for dims in re.findall(r"\w\[([\d,]*)\]", found[1]):
                yield found[2], math.prod(int(n) for n in dims.split(",") if n)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(count) for count in sys.argv[2:]])
