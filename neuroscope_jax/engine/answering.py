"""The two ways from one chosen token to the next."""

from collections.abc import Iterator

import jax

from neuroscope_jax.engine.lookup import MOST_PROPOSED, Lookup
from neuroscope_jax.engine.sequence import TokenSequence
from neuroscope_jax.engine.steps import StepOutput


def one_ahead(sequence: TokenSequence, first: StepOutput, limit: int) -> Iterator[StepOutput]:
    """The choices one by one, on the host. The next step is dispatched before a choice is read."""
    ahead = first
    for index in range(limit):
        output = ahead
        if index + 1 < limit:
            ahead = sequence.step()
        yield _read(output)


def looked_up(sequence: TokenSequence, first: StepOutput) -> Iterator[StepOutput]:
    """The same choices without end, several to a step where the text can be foreseen.

    Nothing is dispatched ahead, since what is proposed hangs on the choice before.
    """
    lookup = Lookup(sequence.ids)
    outputs = [_read(first)]
    while True:
        for output in outputs:
            lookup.append(int(output.choice.id))
            yield output
        proposed = lookup.proposal() if sequence.has_room(1 + MOST_PROPOSED) else []
        if proposed:
            outputs = sequence.verify(proposed)
            lookup.came_true(len(outputs) - 1)
        else:
            outputs = [_read(sequence.step())]


def _read(output: StepOutput) -> StepOutput:
    read: StepOutput = jax.device_get(output)
    return read
