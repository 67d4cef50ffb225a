"""Time to the first token of this project in one dtype, by prompt length and at the tenth turn of a chat."""

from benchmarks.loop_lag import loop_lag
from benchmarks.ours import ask
from benchmarks.patience import first_tokens
from benchmarks.processes import answer
from benchmarks.prompts import BOS, prompt, text
from benchmarks.results import Plan, Spread
from benchmarks.shapes import SHAPES
from benchmarks.startup import Started, start
from benchmarks.yardstick_results import Chat, FirstToken

TURNS = 10


def measure(plan: Plan) -> FirstToken:
    """Every length, the chat, then the longest prompt again beside an event loop."""
    started = start(plan)
    lengths = plan.prompts or SHAPES[plan.shape].first_token
    for length in lengths:
        ask(started.engine, prompt(plan.shape, length), 2)  # compiles the prefill of its length
    seconds = first_tokens(lambda ids: ask(started.engine, ids, 1).arrivals[0], plan, lengths)
    chat = _chat(started, plan)
    lag = loop_lag(started.engine, prompt(plan.shape, max(lengths), 2 * plan.repeats + 3))
    started.engine.close()
    return FirstToken(seconds, chat, lag)


def _chat(started: Started, plan: Plan) -> Chat:
    """A chat a repeat, the first of which only warms up, each followed by prompts of the new part's length."""
    turn = SHAPES[plan.shape].turn
    talks = [_tenth_turn(started, plan, number) for number in range(plan.repeats + 1)][1:]
    return Chat(
        prompt_tokens=1 + TURNS * turn.question + (TURNS - 1) * turn.answer,
        new_tokens=turn.question + 1,
        turn_seconds=Spread.of([tenth for tenth, _ in talks]),
        fresh_seconds=Spread.of([fresh for _, fresh in talks]),
        ratio=Spread.of([tenth / fresh for tenth, fresh in talks]),
    )


def _tenth_turn(started: Started, plan: Plan, number: int) -> tuple[float, float]:
    """Seconds to the first token of the tenth turn, and of a new prompt as long as what that turn adds."""
    turn = SHAPES[plan.shape].turn
    ids: tuple[int, ...] = (BOS,)
    for index in range(TURNS):
        ids += text(plan.shape, turn.question, turn.question, number, index)
        reply = ask(started.engine, ids, turn.answer)
        ids += tuple(token.id for token in reply.tokens)
    fresh = prompt(plan.shape, turn.question + 1, plan.repeats + 1 + number)
    return reply.arrivals[0], ask(started.engine, fresh, 1).arrivals[0]


if __name__ == "__main__":
    answer(measure, Plan)
