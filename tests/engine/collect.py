"""Submit a request and wait for all of it; and which steps were compiled meanwhile."""

import contextlib
import logging
import re
import threading
from collections.abc import Iterator

import jax
import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.engine.engine import JaxEngine
from neuroscope_jax.engine.load import Loaded, load
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


def loaded_and_compiled(config: NeuroscopeConfig) -> tuple[Loaded, list[str], list[str]]:
    """A pair as it is served; the steps that were compiled before its engine was started, and by that."""
    start, at_start = JaxEngine.start, []

    def starting(engine: JaxEngine) -> None:
        with steps_compiled() as names:
            start(engine)
        at_start.extend(names)

    with pytest.MonkeyPatch.context() as patch, steps_compiled() as names:
        patch.setattr(JaxEngine, "start", starting)
        found = load(config)
    return found, names[: len(names) - len(at_start)], at_start


@contextlib.contextmanager
def steps_compiled() -> Iterator[list[str]]:
    """The names of the steps that are compiled, or taken from the cache on disk, in their order."""
    names: list[str] = []

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            names.extend(re.findall(r"^Compiling jit\((\w+_step)\)", record.getMessage()))

    noting, logger = Noting(), logging.getLogger("jax")
    logger.addHandler(noting)
    try:
        with jax.log_compiles():
            yield names
    finally:
        logger.removeHandler(noting)
