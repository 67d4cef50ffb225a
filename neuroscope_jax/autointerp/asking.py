"""How a run asks: model, prices and limits, one call each or in batches, for good or only to see what it would cost."""

import dataclasses

from neuroscope_jax.autointerp.settings import Settings


@dataclasses.dataclass(frozen=True)
class Asking:
    """What a user may say about the calls of a run."""

    settings: Settings
    batch: bool = False
    retry_failed: bool = False
    dry_run: bool = False
