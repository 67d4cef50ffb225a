"""Orbax as it is used here: trees of arrays by name, every process its own, one plain reason for a failure."""

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from orbax.checkpoint.options import MultiprocessingOptions


def alone() -> "MultiprocessingOptions":
    """Options of a process that waits for no other."""
    import orbax.checkpoint as ocp  # two seconds that only those who save or restore should pay

    here = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        primary_host=here, active_processes={here}, barrier_sync_key_prefix=f"host{here}"
    )


def by_name(tree: Any) -> dict[str, Any]:
    """Every leaf under the name of its place."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="-"): leaf for path, leaf in jax.tree.leaves_with_path(tree)
    }


@contextlib.contextmanager
def told_once() -> Iterator[None]:
    """Orbax's threads log and print the traceback of the very error that it then raises here."""
    log = logging.getLogger("absl")
    of_threads, of_callbacks, log.disabled = threading.excepthook, sys.unraisablehook, True
    threading.excepthook, sys.unraisablehook = lambda _: None, lambda _: None
    try:
        yield
        sys.unraisablehook = of_callbacks  # not after a failure: writes that are still under way fail later
    finally:
        threading.excepthook, log.disabled = of_threads, False


def reason(error: Exception) -> str:
    """The system's own words where TensorStore's long message holds an error code, else its first line."""
    text = str(error).strip() or type(error).__name__
    code = re.search(r"os_error_code='?(\d+)", text)
    return os.strerror(int(code[1])) if code else text.splitlines()[0][:200]
