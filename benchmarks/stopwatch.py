"""Seconds by the clock and of the cores."""

import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.corpus_results import Took

Result = TypeVar("Result")


def per_second(arrivals: list[float]) -> float:
    """Tokens a second after the first, from the seconds at which they came. At least two."""
    return (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])


def timed(work: Callable[[], Result]) -> tuple[Result, Took]:
    """What `work` returns, and how long it took."""
    began, worked = time.perf_counter(), time.process_time()
    result = work()
    return result, Took(time.perf_counter() - began, time.process_time() - worked)
