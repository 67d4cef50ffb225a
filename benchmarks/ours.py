"""One dtype of this project: the engine as a user meets it, then the decode step with and without tap."""

import dataclasses
import queue
import statistics
import time
from collections.abc import Callable

import jax

from benchmarks.bandwidth import SMALL, forms_of
from benchmarks.memory import peak_bytes
from benchmarks.patience import first_tokens
from benchmarks.processes import answer
from benchmarks.prompts import prompt
from benchmarks.results import Ours, Plan, Spread
from benchmarks.shapes import SHAPES
from benchmarks.startup import start
from benchmarks.steps import step_cost
from benchmarks.stopwatch import per_second
from neuroscope_jax.engine.requests import Engine, Finished, GeneratedToken, GenerationRequest, Item, SamplingOptions
from neuroscope_jax.sae.autoencoder import SparseAutoencoder

GREEDY = SamplingOptions(temperature=0)
OTHER = SamplingOptions(
    temperature=0.8, top_p=0.9, top_k=40, seed=7, presence_penalty=0.5, frequency_penalty=0.5, top_logprobs=5
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """One request's tokens, and when each came, in seconds from the request."""

    tokens: list[GeneratedToken]
    arrivals: list[float]

    @property
    def tokens_per_second(self) -> float:
        """Of the tokens after the first."""
        return per_second(self.arrivals)


def ask(engine: Engine, ids: tuple[int, ...], tokens: int, sampling: SamplingOptions = GREEDY) -> Answer:
    """Send one request through the engine. Raises the error it ended with."""
    delivered: queue.Queue[tuple[float, Item]] = queue.Queue()
    began = time.perf_counter()
    engine.submit(
        GenerationRequest(ids, tokens, sampling), lambda item: delivered.put((time.perf_counter() - began, item))
    )
    received = Answer([], [])
    while True:
        arrival, item = delivered.get()
        if isinstance(item, Finished):
            if item.error is not None:
                raise item.error
            return received
        if isinstance(item, GeneratedToken):
            received.tokens.append(item)
            received.arrivals.append(arrival)


def measure(plan: Plan) -> Ours:
    """Everything about one dtype."""
    started = start(plan)
    prompts = [prompt(plan.shape, length) for length in SHAPES[plan.shape].prompts]
    for ids in prompts:
        ask(started.engine, ids, 2)  # compiles the prefill of its length
    first = first_tokens(lambda ids: ask(started.engine, ids, 1).arrivals[0], plan, SHAPES[plan.shape].prompts)
    answers = [ask(started.engine, prompts[0], plan.tokens) for _ in range(plan.repeats)]
    before = started.compilations.requested
    ask(started.engine, prompts[0], plan.tokens, OTHER)
    recompiled = started.compilations.requested - before
    peak = peak_bytes(started.device)
    forms = forms_of(SMALL, started.device).values()
    read_speed, share = share_of_limit(
        _bytes(started.params) + _read_bytes(started.tap.sae),
        lambda: ask(started.engine, prompts[0], plan.tokens).tokens_per_second,
        lambda: max(statistics.median(read() for _ in range(3)) for read in forms),
        plan.repeats,
    )
    started.engine.close()
    step, average_l0 = step_cost(started, prompts[0], plan.tokens)
    return Ours(
        start=started.times,
        second_start=None,
        first_token_seconds=first,
        tokens_per_second=Spread.of([a.tokens_per_second for a in answers]),
        read_speed=read_speed,
        share=share,
        step=step,
        recompiled=recompiled,
        average_l0=average_l0,
        model_bytes=_bytes(started.params),
        sae_bytes=_read_bytes(started.tap.sae),
        peak_bytes=peak,
        ids=[token.id for token in answers[0].tokens],
    )


def share_of_limit(
    nbytes: int, tokens_per_second: Callable[[], float], read_speed: Callable[[], float], repeats: int
) -> tuple[Spread, Spread]:
    """Bytes a second of reading memory, and what share of that each answer reads, `nbytes` for each of its tokens.

    By turns, since other users of a machine's memory come and go within a minute.
    """
    speeds, shares = [read_speed()], []
    for _ in range(repeats):
        read = nbytes * tokens_per_second()
        speeds.append(read_speed())
        shares.append(read / max(speeds[-2:]))
    return Spread.of(speeds), Spread.of(shares)


def _read_bytes(sae: SparseAutoencoder) -> int:
    """Of an encoder at a token, but for the few rows that are multiplied exactly behind a screen."""
    return int((sae.encoder_rows if sae.screen is None else sae.screen.rounded_rows).nbytes)


def _bytes(tree: object) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


if __name__ == "__main__":
    answer(measure, Plan)
