"""The decode step alone: what the tap costs, and that without one nothing of an SAE is in the program."""

import statistics
import time

import jax.numpy as jnp

from benchmarks.results import Spread, StepCost
from benchmarks.startup import Started
from neuroscope_jax.engine import steps
from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.engine.sampling import Sampling
from neuroscope_jax.features.readout import Tap

CACHE_LENGTH = 512
PAIRS_PER_TOKEN = 3
Taps = tuple[Tap, ...]


def step_cost(started: Started, ids: tuple[int, ...], tokens: int) -> tuple[StepCost, float]:
    """Time both steps by turns, PAIRS_PER_TOKEN * `tokens` times; also the average L0 of the SAE at `tokens` tokens."""
    decoders = {"tapped": _Decoder(started, ids, (started.tap,)), "bare": _Decoder(started, ids, ())}
    programs = {name: decoder.program() for name, decoder in decoders.items()}
    for decoder in decoders.values():
        decoder.step()
    order = list(decoders.values())
    for _ in range(PAIRS_PER_TOKEN * tokens):
        for decoder in order:
            decoder.step(decoder.seconds)
        order.reverse()  # neither always follows the other
    tapped, bare = decoders["tapped"].seconds, decoders["bare"].seconds
    marks = {name: _marks(text, started.tap) for name, (text, _) in programs.items()}
    cost = StepCost(
        tapped_seconds=Spread.of(tapped),
        bare_seconds=Spread.of(bare),
        overhead=Spread.of([t / b - 1 for t, b in zip(tapped, bare, strict=True)]),
        temporary_bytes=programs["tapped"][1],
        bare_marks=marks["bare"],
        tapped_marks=marks["tapped"],
    )
    return cost, _average_l0(started, decoders["tapped"], tokens)


class _Decoder:
    """A greedy generation that is waited for at every step."""

    def __init__(self, started: Started, ids: tuple[int, ...], taps: Taps) -> None:
        self._model, self._params, self.taps = started.model, started.params, taps
        self._sampling = Sampling.of(SamplingOptions(temperature=0), ())
        self.state, _ = steps.prefill_step(
            self._model,
            self._params,
            taps,
            steps.empty_cache(self._model, CACHE_LENGTH),
            jnp.array([ids]),
            jnp.int32(0),
            jnp.int32(len(ids)),
            self._sampling,
        )
        self.seconds: list[float] = []

    def step(self, into: list[float] | None = None) -> steps.StepOutput:
        output: steps.StepOutput
        began = time.perf_counter()
        self.state, output = steps.decode_step(self._model, self._params, self.taps, self.state, self._sampling)
        output.choice.id.block_until_ready()
        for readout in output.features:
            readout.activations.block_until_ready()
        if into is not None:
            into.append(time.perf_counter() - began)
        return output

    def program(self) -> tuple[str, int]:
        """The compiled step's text and the bytes of its temporaries."""
        compiled = steps.decode_step.lower(self._model, self._params, self.taps, self.state, self._sampling).compile()
        return str(compiled.as_text()), int(getattr(compiled.memory_analysis(), "temp_size_in_bytes", 0))


def _marks(program: str, tap: Tap) -> list[str]:
    """Names and sizes that only an SAE brings into a program, where they occur in it."""
    marks = ("sae_encode", "top_features", "encoder_rows", f"[{tap.sae.d_sae}]", f"[{tap.sae.d_sae},")
    return [mark for mark in marks if mark in program]


def _average_l0(started: Started, decoder: _Decoder, tokens: int) -> float:
    """With a filter that suppresses every feature, `filtered_count` is the number of active ones."""
    everything = started.tap.filter.replace(suppressed=jnp.ones(started.tap.sae.d_sae, bool))
    decoder.taps = (started.tap.replace(filter=everything),)
    return statistics.mean(int(decoder.step().features[0].filtered_count) for _ in range(tokens))
