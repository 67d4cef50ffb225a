"""Submit a request and wait for all of it."""

import threading

from neuroscope_jax.engine.requests import Finished, GeneratedToken, GenerationRequest, SamplingOptions

GREEDY = SamplingOptions(temperature=0)


class Collector:
    """A `deliver` that keeps what it gets and can be waited for."""

    def __init__(self) -> None:
        self.tokens: list[GeneratedToken] = []
        self.ends: list[Finished] = []
        self._done = threading.Event()

    def __call__(self, item: GeneratedToken | Finished) -> None:
        if isinstance(item, Finished):
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


def run(engine, prompt, max_tokens, sampling=GREEDY) -> Collector:
    """Everything one request delivers."""
    collector = Collector()
    engine.submit(GenerationRequest(tuple(prompt), max_tokens, sampling), collector)
    return collector.wait()
