"""One server a session: on the demo pair, on the real one where asked for."""

import os
from collections.abc import Iterator

import pytest

from neuroscope_jax.config import NeuroscopeConfig, load_preset
from tests.running_server import Server, running

PAIRS = ["demo", "gemma-2-2b-it"] if os.environ.get("NEUROSCOPE_INTEGRATION_TESTS") == "1" else ["demo"]


@pytest.fixture(scope="session", params=PAIRS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(request.param, tmp_path_factory.mktemp("cache")) as started:
        yield started


@pytest.fixture(scope="session", params=PAIRS)
def config(request: pytest.FixtureRequest) -> NeuroscopeConfig:
    return load_preset(request.param)
