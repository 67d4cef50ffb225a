"""What a device runs into, told to a user; everything else stays what it is."""

from pathlib import Path

import jax
import pytest

from neuroscope_jax.errors import UserError
from neuroscope_jax.models.explained import explained

FULL = "RESOURCE_EXHAUSTED: Out of memory allocating 67239936 bytes."


@pytest.mark.parametrize(
    "error", [ValueError(FULL), jax.errors.JaxRuntimeError(FULL), MemoryError("Unable to allocate")]
)
def test_memory_that_does_not_suffice(error: Exception) -> None:
    with pytest.raises(UserError, match="pair: not enough memory; try less"), explained(Path("pair"), "less"):
        raise error


def test_numbers_that_are_not_finite() -> None:
    with pytest.raises(UserError, match="weights are damaged"), explained(Path("pair"), "less"):
        raise FloatingPointError("NaN in layer 3")


@pytest.mark.parametrize("error", [ValueError("another"), jax.errors.JaxRuntimeError("INTERNAL: another")])
def test_anything_else(error: Exception) -> None:
    with pytest.raises(type(error), match="another"), explained(Path("pair"), "less"):
        raise error
