"""What a device can run into with a checkpoint, in a user's words."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import jax

from neuroscope_jax.errors import UserError


@contextlib.contextmanager
def explained(folder: Path, remedies: str) -> Iterator[None]:
    """Numbers that are not finite, and memory that does not suffice, as UserError; `remedies` are for the latter."""
    try:
        yield
    except FloatingPointError as error:
        raise UserError(f"{folder}: {error}; the weights are damaged, or config.json is another model's") from error
    except (jax.errors.JaxRuntimeError, ValueError, MemoryError) as error:
        # A device's memory, told in either way where a program fails as it is called, or the host's.
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(f"{folder}: not enough memory; try {remedies}") from error
