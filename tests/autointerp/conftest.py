"""A finished corpus pass of the demo pair, small enough to be made once a test run."""

import os

import pytest
from filelock import FileLock

from neuroscope_jax.autointerp.evidence import Evidence
from neuroscope_jax.config import NeuroscopeConfig, load_preset
from neuroscope_jax.corpus.calibrate import Options, calibrate
from neuroscope_jax.corpus.hosts import Hosts
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.models.chat import ChatTokenizer
from neuroscope_jax.models.hub import DEMO_FOLDER

SAMPLES = 300


@pytest.fixture(scope="session")
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(DEMO_FOLDER / "model")


@pytest.fixture(scope="session")
def demo_config() -> NeuroscopeConfig:
    return load_preset("demo")


@pytest.fixture(scope="session")
def demo_pass(demo_config: NeuroscopeConfig, tmp_path_factory: pytest.TempPathFactory) -> Files:
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo_pass"  # one for all workers
    files = Files(folder / "demo_stats.json")
    with FileLock(folder.with_suffix(".lock")):
        if not files.stats.exists():
            calibrate(demo_config, Options(None, SAMPLES, 0, files, None, False, 3600.0, Hosts()))
    return files


@pytest.fixture(scope="session")
def demo_evidence(demo_pass: Files, tokenizer: ChatTokenizer) -> Evidence:
    return Evidence(demo_pass, tokenizer)
