"""The state of an unfinished pass on disk, kept by Orbax: what was counted, and how many batches that were."""

import logging
from pathlib import Path

import jax
import numpy as np

from neuroscope_jax.corpus.state import CorpusState
from neuroscope_jax.errors import UserError
from neuroscope_jax.saving import alone, by_name, reason, told_once

logger = logging.getLogger(__name__)


class Checkpoints:
    """The latest state of one pass in one folder. State and batch count are saved as one, or not at all."""

    def __init__(self, folder: Path) -> None:
        import orbax.checkpoint as ocp  # two seconds that only a pass should pay

        options = ocp.CheckpointManagerOptions(
            max_to_keep=1,
            cleanup_tmp_directories=True,  # what a kill in the middle of a save left
            enable_async_checkpointing=False,
            multiprocessing_options=alone(),  # every host saves its own
            create=False,
        )
        self._args, self._folder = ocp.args, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._manager = ocp.CheckpointManager(folder.resolve(), options=options)

    def save(self, batches: int, states: CorpusState) -> None:
        """Keep the states after `batches` batches. Raises UserError where they cannot be written."""
        leaves = {name: np.asarray(leaf) for name, leaf in by_name(jax.device_get(states)).items()}
        try:
            with told_once():
                self._manager.save(batches, args=self._args.StandardSave(leaves))
        except Exception as error:  # Orbax and TensorStore raise several kinds
            raise UserError(
                f"{self._folder}: the state of the pass cannot be saved ({reason(error)}). The last saved state "
                "is untouched: make room, then run the same command again to go on from there"
            ) from error

    def restore(self, like: CorpusState) -> tuple[int, CorpusState]:
        """Batches done and their states, shaped and placed as `like`; 0 and `like` itself where nothing was saved.

        Raises UserError for a damaged checkpoint.
        """
        batches = self._manager.latest_step()
        if batches is None:
            return 0, like
        expected = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in by_name(like).items()}
        try:
            leaves = self._manager.restore(batches, args=self._args.StandardRestore(expected))
        except Exception as error:
            raise UserError(
                f"{self._folder}: the saved state of this pass is damaged ({reason(error)}); "
                "delete the folder, or give --restart, to begin anew"
            ) from error
        placed = [jax.device_put(leaves[name], old.sharding) for name, old in by_name(like).items()]
        return batches, jax.tree.unflatten(jax.tree.structure(like), placed)

    def close(self) -> None:
        """Give up Orbax's threads."""
        self._manager.close()
