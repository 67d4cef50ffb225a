"""The state of an unfinished pass on disk, kept by Orbax: what was counted, and how many batches that were."""

import logging
from pathlib import Path

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
            max_to_keep=1, enable_async_checkpointing=False, multiprocessing_options=alone, create=False
        )
        self._args, self._folder = ocp.args, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._manager = ocp.CheckpointManager(folder.resolve(), options=options)

    def save(self, batches: int, states: CorpusState) -> None:
        """Keep the states after `batches` batches. Raises UserError where they cannot be written."""
        tree = jax.tree.map(np.asarray, jax.device_get(_plain(states)))
        try:
            self._manager.save(batches, args=self._args.StandardSave(tree))
        except Exception as error:  # Orbax and TensorStore raise several kinds
            raise UserError(
                f"{self._folder}: the state of the pass cannot be saved ({_first_line(error)}). The last saved state "
                "is untouched: make room, then run the same command again to go on from there"
            ) from error

    def restore(self, like: CorpusState) -> tuple[int, CorpusState]:
        """Batches done and their states, shaped and placed as `like`; 0 and `like` itself where nothing was saved.

        Raises UserError for a damaged checkpoint.
        """
        batches = self._manager.latest_step()
        if batches is None:
            return 0, like
        shapes = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), _plain(like))
        try:
            tree = self._manager.restore(batches, args=self._args.StandardRestore(shapes))
        except Exception as error:
            raise UserError(
                f"{self._folder}: the saved state of this pass is damaged ({_first_line(error)}); "
                "delete the folder, or give --restart, to begin anew"
            ) from error
        leaves = jax.tree.leaves(tree)
        placed = [jax.device_put(x, old.sharding) for x, old in zip(leaves, jax.tree.leaves(like), strict=True)]
        return batches, jax.tree.unflatten(jax.tree.structure(like), placed)

    def close(self) -> None:
        """Give up Orbax's threads."""
        self._manager.close()


def _plain(states: CorpusState) -> dict[str, object]:
    """As nested dicts, which is what Orbax names on disk."""
    from flax import serialization

    plain: dict[str, object] = serialization.to_state_dict(states)
    return plain


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
