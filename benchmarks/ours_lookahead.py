"""What lookahead gains where a text can be foreseen, and what it costs where it cannot, in one dtype.

Random weights quote nothing, so a bias makes the answer one token over and over: from the third on every proposal comes
true, which is the most there is to gain. Drawn tokens never stood before in such a row: nothing is proposed.
"""

from benchmarks.ours import ask
from benchmarks.processes import answer
from benchmarks.prompts import FIRST_ID, prompt
from benchmarks.results import Plan, Spread
from benchmarks.shapes import SHAPES
from benchmarks.startup import serving, start
from benchmarks.yardstick_results import Lookahead
from neuroscope_jax.engine.requests import Engine, SamplingOptions

FORESEEN = SamplingOptions(temperature=0, logit_bias=((FIRST_ID, 100.0),))
UNFORESEEN = SamplingOptions(temperature=2.0, seed=1)


def measure(plan: Plan) -> Lookahead:
    """Both kinds of text, with and without by turns."""
    shape = SHAPES[plan.shape]
    started = start(plan)
    ahead = serving(started.model, started.params, started.tap, shape.context_length, lookahead=True)
    engines = (started.engine, ahead)
    foreseen = [_speeds(engines, plan, FORESEEN) for _ in range(plan.repeats)]
    unforeseen = [_speeds(engines, plan, UNFORESEEN) for _ in range(plan.repeats)]
    for engine in engines:
        engine.close()
    return Lookahead(
        plain=Spread.of([plain for plain, _ in foreseen]),
        foreseen=Spread.of([ahead for _, ahead in foreseen]),
        gain=Spread.of([ahead / plain for plain, ahead in foreseen]),
        elsewhere=Spread.of([ahead / plain for plain, ahead in unforeseen]),
    )


def _speeds(engines: tuple[Engine, Engine], plan: Plan, sampling: SamplingOptions) -> tuple[float, float]:
    """Tokens a second of each."""
    ids = prompt(plan.shape, SHAPES[plan.shape].prompts[0])
    plain, ahead = (ask(engine, ids, plan.tokens, sampling).tokens_per_second for engine in engines)
    return plain, ahead


if __name__ == "__main__":
    answer(measure, Plan)
