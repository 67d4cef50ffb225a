"""A process for each measurement, so that its peak memory and its compile cache are its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from neuroscope_jax.errors import UserError

Result = TypeVar("Result")
PlanType = TypeVar("PlanType", bound=msgspec.Struct)

ROOT = Path(__file__).parent.parent
# The first two make a BLAS library choose another kernel than the machine's own; the last makes a cold start warm.
LEFT_OUT = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "JAX_COMPILATION_CACHE_DIR")


class MeasurementFailed(Exception):
    """A process ended with an error, which it has written to stderr."""


class Orders(Protocol):
    """What a process is told, a msgspec struct."""

    @property
    def dtype(self) -> str:
        """For the message where it fails."""


def measure(module: str, plan: Orders, result: type[Result], **environment: str) -> Result:
    """Run `python -m benchmarks.<module>` on a plan and read its report. Raises MeasurementFailed."""
    inherited = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", msgspec.json.encode(plan).decode()],
        cwd=ROOT,
        env=inherited | environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise MeasurementFailed(f"benchmarks.{module} ({plan.dtype}) ended with status {done.returncode}, see above")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=result)


def answer(measure: Callable[[PlanType], msgspec.Struct], plan: type[PlanType]) -> None:
    """The child's side: measure by the plan it was started with, and write the result as the last line of stdout."""
    try:
        result = measure(msgspec.json.decode(sys.argv[1], type=plan))
    except UserError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
