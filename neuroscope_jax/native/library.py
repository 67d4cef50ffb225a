"""The kernels as libraries, compiled on the machine they run on, once.

Not at package build: a library must match this machine's vector unit and the installed jaxlib's headers, and a wheel
knows neither. Like bytecode it is kept beside its sources, or in the cache folder where that cannot be written.
"""

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from neuroscope_jax.config import cache_folder
from neuroscope_jax.native import compiler
from neuroscope_jax.native.compiler import Unavailable

logger = logging.getLogger(__name__)

SWITCH = "NEUROSCOPE_NATIVE"  # 0 leaves everything to XLA
SCRATCH = "compiling-"
Sources = tuple[str, ...]  # of a library; the first names it and is the one that XLA calls
KERNELS: Sources = ("kernels.cc", "float32.cc", "bfloat16.cc", "tiles.cc")
QUANTIZED: Sources = ("quantized.cc", "int8.cc")


@functools.cache
def begin(sources: Sources) -> Future[ctypes.CDLL]:
    """A library, made by a thread of its own while a start does other things.

    Imports no JAX. The future raises Unavailable.
    """
    making: Future[ctypes.CDLL] = Future()
    Thread(target=_make, args=(sources, making), name=f"compile {sources[0]}", daemon=True).start()
    return making


def _make(sources: Sources, making: Future[ctypes.CDLL]) -> None:
    try:
        making.set_result(library(sources))
    except BaseException as error:  # whoever asks for the result is told
        making.set_exception(error)


def library(sources: Sources) -> ctypes.CDLL:
    """A library, compiled if it is not kept yet. Raises Unavailable."""
    if os.environ.get(SWITCH) == "0":
        raise Unavailable(f"{SWITCH}=0")
    found = compiler.compiler()
    name = _name(sources, found)
    for path in (folder / name for folder in _folders()):
        with contextlib.suppress(Unavailable):  # absent, cut short, or where nothing may be executed: made anew
            return _load(path)
    return _load(_compiled(sources, found, name))


def _name(sources: Sources, found: str) -> str:
    outcome = chr(0).join(compiler.outcome_of(sources, found))
    return f"{Path(sources[0]).stem}-{hashlib.sha256(outcome.encode()).hexdigest()[:16]}.so"


def _folders() -> Iterator[Path]:
    yield compiler.SOURCES / "__pycache__"
    yield cache_folder() / "native"


def _compiled(sources: Sources, found: str, name: str) -> Path:
    logger.info("compiling %s, once for this machine", ", ".join(sources))
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _sweep(folder)
            with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH) as scratch:
                made = Path(scratch) / name
                compiler.build(sources, found, made)
                ctypes.CDLL(str(made))  # one that cannot be loaded here is not kept
                return made.replace(folder / name)
        except OSError:  # the next folder may be writable
            continue
    raise Unavailable("no folder for the compiled library can be written")


def _sweep(folder: Path) -> None:
    """Take away what compilations that were cut short have left."""
    for left in folder.glob(f"{SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # its owner is done
            if time.time() - left.stat().st_mtime > 2 * compiler.PATIENCE:
                shutil.rmtree(left, ignore_errors=True)


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"{path} cannot be loaded: {error}") from error
