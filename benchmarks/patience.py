"""Time to the first token by prompt length, of whatever program, as long as it is bearable."""

from collections.abc import Callable, Iterable

from benchmarks.prompts import prompt
from benchmarks.results import Plan, Spread

PATIENCE = 300.0  # seconds for one length: PyTorch is slow in bfloat16 where a CPU has no instructions for it


def first_tokens(timed: Callable[[tuple[int, ...]], float], plan: Plan, lengths: Iterable[int]) -> dict[str, Spread]:
    """The spread of `timed` over prompts that the program has not seen, by length, from the shortest to the longest.

    A length whose prompts have taken longer than PATIENCE gets no further repeats, and is the last one; one that would
    take longer at the pace of the one before is left out.
    """
    found: dict[str, Spread] = {}
    pace = 0.0  # seconds a token
    for length in sorted(lengths):
        if pace * length > PATIENCE:
            break
        seconds: list[float] = []
        while len(seconds) < plan.repeats and sum(seconds) <= PATIENCE:
            seconds.append(timed(prompt(plan.shape, length, len(seconds) + 1)))
        found[str(length)] = Spread.of(seconds)
        pace = found[str(length)].median / length
        if sum(seconds) > PATIENCE:
            break
    return found
