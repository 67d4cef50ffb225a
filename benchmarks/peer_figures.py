"""What every peer that decodes is measured by, once it is loaded and can generate."""

from collections.abc import Callable

from benchmarks.patience import first_tokens
from benchmarks.prompts import prompt
from benchmarks.results import Peer, Plan, Spread
from benchmarks.shapes import SHAPES
from benchmarks.stopwatch import per_second

Generate = Callable[[tuple[int, ...], int], tuple[list[int], list[float]]]  # prompt and tokens to ids and arrivals


def figures(
    plan: Plan, load_seconds: float, generate: Generate, peak_bytes: Callable[[], int], features: bool = True
) -> Peer:
    """Time to the first token by prompt length, then answers to the shortest prompt."""
    lengths = plan.prompts or SHAPES[plan.shape].prompts
    ids = prompt(plan.shape, lengths[0])
    generate(ids, 2)
    first = first_tokens(lambda ids: generate(ids, 1)[1][0], plan, lengths)
    answers = [generate(ids, plan.tokens) for _ in range(plan.repeats)]
    return Peer(
        load_seconds=load_seconds,
        first_token_seconds=first,
        tokens_per_second=Spread.of([per_second(arrivals) for _, arrivals in answers]),
        peak_bytes=peak_bytes(),
        ids=answers[0][0],
        features=features,
    )
