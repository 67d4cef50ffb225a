"""Submit a request and wait for all of it."""

import threading

from neuroscope_jax.engine.requests import (
    Finished,
    GeneratedToken,
    GenerationRequest,
    Item,
    PromptScored,
    SamplingOptions,
)

GREEDY = SamplingOptions(temperature=0)


class Collector:
    """A `deliver` that keeps what it gets and can be waited for."""

    def __init__(self) -> None:
        self.scored: list[PromptScored] = []
        self.tokens: list[GeneratedToken] = []
        self.ends: list[Finished] = []
        self._done = threading.Event()

    def __call__(self, item: Item) -> None:
        if isinstance(item, PromptScored):
            assert not self.scored + self.tokens + self.ends, "the scores of the prompt come first, and once"
            self.scored.append(item)
        elif isinstance(item, Finished):
            self.ends.append(item)
            self._done.set()
        else:
            assert not self.ends, "a token after the end"
            self.tokens.append(item)

    def wait(self) -> "Collector":
        assert self._done.wait(60), "the generation never finished"
        return self

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]


def run(engine, prompt, max_tokens, sampling=GREEDY, *, score_prompt=False) -> Collector:
    """Everything one request delivers."""
    collector = Collector()
    engine.submit(GenerationRequest(tuple(prompt), max_tokens, sampling, score_prompt=score_prompt), collector)
    return collector.wait()
