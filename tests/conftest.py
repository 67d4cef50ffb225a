"""What every test gets: JAX on the CPU unless told otherwise, and a cache folder of its own."""

import logging
import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before anything imports JAX


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Labels and statistics of the person who runs the tests must not reach them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEUROSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    """The commands set log levels; put them back."""
    before = {name: logging.getLogger(name).level for name in ("neuroscope_jax", "server")}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)
