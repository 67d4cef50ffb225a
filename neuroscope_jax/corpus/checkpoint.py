"""The state of an unfinished pass on disk, kept by Orbax: what was counted, and how many batches that were."""

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from neuroscope_jax.corpus.state import CorpusState
from neuroscope_jax.errors import UserError

logger = logging.getLogger(__name__)


class Checkpoints:
    """The latest state of one pass in one folder. State and batch count are saved as one, or not at all."""

    def __init__(self, folder: Path) -> None:
        import orbax.checkpoint as ocp  # two seconds that only a pass should pay

        here = jax.process_index()
        alone = ocp.options.MultiprocessingOptions(
            primary_host=here, active_processes={here}, barrier_sync_key_prefix=f"host{here}"
        )  # every host saves its own
        options = ocp.CheckpointManagerOptions(
            max_to_keep=1,
            cleanup_tmp_directories=True,  # what a kill in the middle of a save left
            enable_async_checkpointing=False,
            multiprocessing_options=alone,
            create=False,
        )
        self._args, self._folder = ocp.args, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._manager = ocp.CheckpointManager(folder.resolve(), options=options)

    def save(self, batches: int, states: CorpusState) -> None:
        """Keep the states after `batches` batches. Raises UserError where they cannot be written."""
        leaves = {name: np.asarray(leaf) for name, leaf in _by_name(jax.device_get(states)).items()}
        try:
            with _told_once():
                self._manager.save(batches, args=self._args.StandardSave(leaves))
        except Exception as error:  # Orbax and TensorStore raise several kinds
            raise UserError(
                f"{self._folder}: the state of the pass cannot be saved ({_reason(error)}). The last saved state "
                "is untouched: make room, then run the same command again to go on from there"
            ) from error

    def restore(self, like: CorpusState) -> tuple[int, CorpusState]:
        """Batches done and their states, shaped and placed as `like`; 0 and `like` itself where nothing was saved.

        Raises UserError for a damaged checkpoint.
        """
        batches = self._manager.latest_step()
        if batches is None:
            return 0, like
        expected = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in _by_name(like).items()}
        try:
            leaves = self._manager.restore(batches, args=self._args.StandardRestore(expected))
        except Exception as error:
            raise UserError(
                f"{self._folder}: the saved state of this pass is damaged ({_reason(error)}); "
                "delete the folder, or give --restart, to begin anew"
            ) from error
        placed = [jax.device_put(leaves[name], old.sharding) for name, old in _by_name(like).items()]
        return batches, jax.tree.unflatten(jax.tree.structure(like), placed)

    def close(self) -> None:
        """Give up Orbax's threads."""
        self._manager.close()


def _by_name(states: CorpusState) -> dict[str, Any]:
    """Every leaf under the name of its place."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="-"): leaf for path, leaf in jax.tree.leaves_with_path(states)
    }


@contextlib.contextmanager
def _told_once() -> Iterator[None]:
    """Orbax's threads log and print the traceback of the very error that it then raises here."""
    log = logging.getLogger("absl")
    of_threads, of_callbacks, log.disabled = threading.excepthook, sys.unraisablehook, True
    threading.excepthook, sys.unraisablehook = lambda _: None, lambda _: None
    try:
        yield
        sys.unraisablehook = of_callbacks  # not after a failure: writes that are still under way fail later
    finally:
        threading.excepthook, log.disabled = of_threads, False


def _reason(error: Exception) -> str:
    """The system's own words where TensorStore's long message holds an error code, else its first line."""
    text = str(error).strip() or type(error).__name__
    code = re.search(r"os_error_code='?(\d+)", text)
    return os.strerror(int(code[1])) if code else text.splitlines()[0][:200]
