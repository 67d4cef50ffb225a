"""What every test gets: JAX on the CPU unless told otherwise, and a cache folder of its own."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before anything imports JAX


def pytest_configure(config: pytest.Config) -> None:
    """One compile cache for all processes of a run: many of them compile the same programs."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # the processes that run the tests inherit it
        folder = os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="neuroscope-tests-")
        os.environ |= {
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.markexpr == "not slow":
        terminalreporter.write_line("The slow tests were LEFT OUT; run them with: pytest -m slow")


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
