"""The C++ compiler of this machine, and what it makes of the sources beside this file."""

import atexit
import contextlib
import functools
import os
import platform
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Sequence
from importlib.metadata import distribution, version
from pathlib import Path

SOURCES = Path(__file__).parent
FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-w")
CALLING, COMPUTING = "-O1", "-O3"  # sources that XLA calls, which take longest to compile, and those that do the work
PATIENCE = 120.0  # seconds; some 5 are usual


class Unavailable(Exception):
    """Why there are no kernels here, in a few words."""


def compiler() -> str:
    """The path of CXX, or of one that is usual. Raises Unavailable."""
    asked = os.environ.get("CXX")
    for name in [asked] if asked else ["g++", "clang++", "c++"]:
        if found := shutil.which(name):
            return found
    raise Unavailable(f"CXX={asked} is not there" if asked else "there is no C++ compiler")


def outcome_of(sources: Sequence[str], compiler: str) -> list[str]:
    """Everything that decides what comes of compiling; a folder may be seen from machines that differ."""
    texts = [path.read_bytes().hex() for path in (*(SOURCES / s for s in sources), *sorted(SOURCES.glob("*.h")))]
    return [*texts, compiler, _headers(), version("jaxlib"), *FLAGS, CALLING, COMPUTING, *_processor()]


def build(sources: Sequence[str], compiler: str, library: Path) -> None:
    """Compile sources side by side and link them to a library, beside which objects are left. Raises Unavailable.

    The first source is the one that XLA calls.
    """
    objects, commands = [], []
    for source in sources:
        objects.append(str(library.parent / f"{source}.o"))
        level = CALLING if source == sources[0] else COMPUTING
        options = [*FLAGS, level, _native(), "-isystem", _headers()]
        commands.append([compiler, *options, "-c", str(SOURCES / source), "-o", objects[-1]])
    _run(commands)
    _run([[compiler, "-shared", *objects, "-o", str(library)]])


def _run(commands: Sequence[Sequence[str]]) -> None:
    """All at the same time; none of them outlives this, or the program."""
    running: list[subprocess.Popen[str]] = []
    stop = functools.partial(_stop, running)
    atexit.register(stop)
    try:
        for command in commands:
            running.append(_started(command))
        for process in running:
            _check(process, process.communicate(timeout=PATIENCE)[1])
    except (subprocess.TimeoutExpired, PermissionError) as error:
        raise Unavailable(f"{commands[0][0]} did not finish: {error}") from error
    finally:
        stop()
        atexit.unregister(stop)


def _started(command: Sequence[str]) -> subprocess.Popen[str]:
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=pipe, text=True, start_new_session=True)


def _stop(running: list[subprocess.Popen[str]]) -> None:
    """With what they have started themselves, which does the work."""
    for process in running:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _check(process: subprocess.Popen[str], stderr: str) -> None:
    if process.returncode:
        lines = [line for line in stderr.splitlines() if "error" in line] or stderr.splitlines() or ["failed"]
        raise Unavailable(f"the C++ compiler: {lines[0]}")


def _headers() -> str:
    """The folder of XLA's FFI headers, as jax.ffi.include_dir() tells it; JAX is not imported for it."""
    return str(distribution("jaxlib").locate_file("jaxlib/include"))


def _native() -> str:
    """The flag that means: for this very processor."""
    return "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"


def _processor() -> list[str]:
    """What this processor can do, as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.is_file() else []
    told = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    return sorted(set(told)) or [platform.machine(), platform.processor(), sysconfig.get_platform()]
