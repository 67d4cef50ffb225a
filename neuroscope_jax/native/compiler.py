"""Compile the kernels on the machine they run on, once.

Not at package build: the library must match this machine's vector unit and the installed jaxlib's headers, and a wheel
knows neither. Like bytecode it is kept beside its source, or in the cache folder where that cannot be written.
"""

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future
from importlib.metadata import distribution, version
from pathlib import Path
from threading import Thread

from neuroscope_jax.config import cache_folder

logger = logging.getLogger(__name__)

SWITCH = "NEUROSCOPE_NATIVE"  # 0 leaves everything to XLA
SOURCES = Path(__file__).parent
KERNELS, QUANTIZED = "kernels.cc", "quantized.cc"
FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-w")
PATIENCE = 120.0  # seconds; some 5 are usual


class Unavailable(Exception):
    """Why there are no kernels here, in a few words."""


@functools.cache
def begin(source: str) -> Future[ctypes.CDLL]:
    """The kernels of a source beside this file, made by a thread of their own while a start does other things.

    Imports no JAX. The future raises Unavailable.
    """
    making: Future[ctypes.CDLL] = Future()
    Thread(target=_make, args=(source, making), name=f"compile {source}", daemon=True).start()
    return making


def _make(source: str, making: Future[ctypes.CDLL]) -> None:
    try:
        making.set_result(library(source))
    except BaseException as error:  # whoever asks for the result is told
        making.set_exception(error)


def library(source: str) -> ctypes.CDLL:
    """The kernels of a source beside this file, compiled if they are not kept yet. Raises Unavailable."""
    if os.environ.get(SWITCH) == "0":
        raise Unavailable(f"{SWITCH}=0")
    compiler = _compiler()
    name = _name(source, compiler)
    for path in (folder / name for folder in _folders()):
        with contextlib.suppress(Unavailable):  # absent, cut short, or where nothing may be executed: made anew
            return _load(path)
    return _load(_compile(source, compiler, name))


def _compiler() -> str:
    asked = os.environ.get("CXX")
    for name in [asked] if asked else ["g++", "clang++", "c++"]:
        if found := shutil.which(name):
            return found
    raise Unavailable(f"CXX={asked} is not there" if asked else "there is no C++ compiler")


def _native() -> str:
    """The flag that means: for this very processor."""
    return "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"


def _headers() -> str:
    """The folder of XLA's FFI headers, as jax.ffi.include_dir() tells it."""
    return str(distribution("jaxlib").locate_file("jaxlib/include"))


def _name(source: str, compiler: str) -> str:
    """One for everything that decides the outcome; a folder may be seen from machines that differ."""
    parts = (*_texts(source), compiler, _headers(), version("jaxlib"), *FLAGS, *_processor())
    return f"{Path(source).stem}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}.so"


def _texts(source: str) -> list[str]:
    return [path.read_bytes().hex() for path in (SOURCES / source, *sorted(SOURCES.glob("*.h")))]


def _processor() -> list[str]:
    """What this processor can do, as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.is_file() else []
    told = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    return sorted(set(told)) or [platform.machine(), platform.processor(), sysconfig.get_platform()]


def _folders() -> Iterator[Path]:
    yield SOURCES / "__pycache__"
    yield cache_folder() / "native"


def _compile(source: str, compiler: str, name: str) -> Path:
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix="kernels-") as scratch:
                made = Path(scratch) / name
                _run([compiler, *FLAGS, _native(), "-isystem", _headers(), str(SOURCES / source), "-o", str(made)])
                ctypes.CDLL(str(made))  # one that cannot be loaded here is not kept
                return made.replace(folder / name)
        except OSError:  # the next folder may be writable
            continue
    raise Unavailable("no folder for the compiled library can be written")


def _run(command: list[str]) -> None:
    logger.info("compiling %s, once for this machine", Path(command[-3]).name)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, PermissionError) as error:
        raise Unavailable(f"{command[0]} did not finish: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["failed"]
        raise Unavailable(f"{command[0]}: {lines[0]}")


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"{path} cannot be loaded: {error}") from error
