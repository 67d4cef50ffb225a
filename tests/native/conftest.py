"""What needs the kernels says so loudly where there are none."""

import pytest

from neuroscope_jax.native import kernels


@pytest.fixture
def native() -> None:
    """Kernels, or a skip."""
    if not all(kernels.available(sources) for sources in kernels.TARGETS):
        pytest.skip("NO NATIVE KERNELS on this machine: their numerics are not tested")
