"""`labels generate` and `labels score` as a user types them, in this process, on a copy of the demo pair's pass."""

import contextlib
import functools
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuroscope_jax import cli, platforms
from neuroscope_jax.autointerp import batches
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.output import Files
from neuroscope_jax.features.calibration import cached_stats_path
from neuroscope_jax.features.label_details import LabelDetails, details_path, read_details
from neuroscope_jax.features.labels import labels_path
from tests.autointerp import stand_in
from tests.autointerp.stand_in import Reply, Request, Script, fitting

find_once = functools.cache(setup.find)  # takes most of the time of a command about few features


class Demo:
    """The demo pair in a cache folder of its own, where its corpus pass is finished."""

    def __init__(self, config: NeuroscopeConfig, finished: Files, cache: Path, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("NEUROSCOPE_CACHE", str(cache))
        patch.setattr(platforms, "choose", lambda platform: None)
        patch.setattr(batches, "POLL", 0.01)
        patch.setattr(setup, "find", find_once)
        self.config, self.cache = config, cache
        self.files = Files(cached_stats_path(config))
        self.files.stats.parent.mkdir(parents=True)
        for copy, made in zip(self.files.all(), finished.all(), strict=True):
            shutil.copy(made, copy)

    @property
    def path(self) -> Path:
        return labels_path(self.config, "autointerp")

    @property
    def details(self) -> LabelDetails:
        return read_details(details_path(self.path))

    def labels(self, path: Path | None = None) -> dict[int, str]:
        """The simple file, as any program would read it."""
        return {int(index): label for index, label in json.loads((path or self.path).read_text()).items()}


def run(*words: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command on the demo pair."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(["labels", *words, "--config", "demo"])
    return status, out.getvalue(), err.getvalue()


def done(*words: str) -> str:
    """What a command prints that succeeds."""
    status, out, err = run(*words)
    assert (status, err) == (0, ""), err
    return out


def refused(*words: str) -> str:
    """The one line of a command that does not."""
    status, out, err = run(*words)
    assert status in (1, 2)
    assert out == ""
    (line,) = err.splitlines()
    return line


def is_score(request: Request) -> bool:
    """Whether a request asks a judge, not for a label."""
    return "s1" in request["output_config"]["format"]["schema"]["properties"]


def script(label: Callable[[str], str | Reply], judge: Callable[[str], dict[str, Any]] | None = None) -> Script:
    """A model that gives labels, or fails to, by the prompt; without a judge it finds no label anywhere."""

    def reply(request: Request) -> Reply:
        text = stand_in.prompt(request)
        if is_score(request):
            return stand_in.answer(judge(text) if judge else fitting(request))
        made = label(text)
        if isinstance(made, Reply):
            return made
        return stand_in.answer({"pattern": "they share it", "label": made, "confidence": "medium"})

    return reply
