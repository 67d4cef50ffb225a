"""The decode step and the memory of this project as the context fills, in one dtype.

A step is the time from one token to the next, as whoever asked for the answer sees it.
"""

import itertools
import statistics

from benchmarks.memory import forget_peak, peak_bytes
from benchmarks.ours import ask
from benchmarks.processes import answer
from benchmarks.prompts import prompt
from benchmarks.results import Plan, Spread
from benchmarks.shapes import SHAPES
from benchmarks.startup import serving, start
from benchmarks.yardstick_results import Growth
from neuroscope_jax.engine.requests import Engine


def measure(plan: Plan) -> Growth:
    """Every position in each round, shortest first; where both contexts are compared, one right after the other."""
    shape = SHAPES[plan.shape]
    started = start(plan)
    short = serving(started.model, started.params, started.tap, shape.short_context)
    steps: dict[int, list[float]] = {position: [] for position in shape.positions}
    peaks: dict[int, list[float]] = {position: [] for position in shape.positions}
    shorts: list[float] = []
    for _ in range(plan.repeats):
        for position in shape.positions:
            forget_peak()
            steps[position].append(_step(started.engine, plan, position))
            peaks[position].append(peak_bytes(started.device))
            if position == shape.common_position:
                shorts.append(_step(short, plan, position))
    started.engine.close()
    short.close()
    return Growth(
        context=shape.context_length,
        step_seconds={str(position): Spread.of(seconds) for position, seconds in steps.items()},
        peak_bytes={str(position): Spread.of(peak) for position, peak in peaks.items()},
        short_context=shape.short_context,
        short_seconds=Spread.of(shorts),
        common_position=shape.common_position,
        ratio=Spread.of([a / b for a, b in zip(steps[shape.common_position], shorts, strict=True)]),
    )


def _step(engine: Engine, plan: Plan, position: int) -> float:
    """Median seconds of the steps behind a prompt of that length."""
    arrivals = ask(engine, prompt(plan.shape, position), plan.tokens).arrivals
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(arrivals))


if __name__ == "__main__":
    answer(measure, Plan)
