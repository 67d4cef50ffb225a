"""The folder of a pass that is under way: one process at a time, and nothing in it that is not the pass's own."""

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import filelock
import msgspec

from neuroscope_jax.corpus.tokenised import BEGINS_FILE, TOKENS_FILE
from neuroscope_jax.errors import UserError
from neuroscope_jax.features.calibration import Provenance
from neuroscope_jax.files import read_json, set_aside

logger = logging.getLogger(__name__)

LOCK_FILE, SETTINGS_FILE, STATE_FOLDER = "lock", "settings.json", "state"
SHOWN = 3  # names of files in a message


class Settings(msgspec.Struct):
    """What decides the result of the pass in a folder; `name` tells two of them apart."""

    name: str
    provenance: Provenance


@contextlib.contextmanager
def unfinished(folder: Path, name: str, provenance: Provenance, restart: bool) -> Iterator[Path]:
    """The folder, new or as the same pass left it; removed where the body succeeds, kept where it does not.

    Raises UserError where another process or another pass has it, where it holds what no pass put there, and for a
    full disk.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / LOCK_FILE, blocking=False):
            _settle(folder, Settings(name, provenance), restart)
            yield folder
            with contextlib.suppress(OSError):  # the result is written; NFS keeps files that are still open
                _clear(folder)
                (folder / LOCK_FILE).unlink()
                folder.rmdir()  # kept where somebody else's file is in it
    except filelock.Timeout as error:
        raise UserError(f"{folder}: another process is at work on this very pass; wait for it, or end it") from error
    except OSError as error:
        raise UserError(
            f"{error.filename or folder}: {error.strerror or error}; what was counted so far is kept in {folder}: "
            "make room, then run the same command again"
        ) from error


def _settle(folder: Path, wanted: Settings, restart: bool) -> None:
    """Make sure that what is in the folder belongs to this pass."""
    settings = folder / SETTINGS_FILE
    if not settings.exists():
        _check_empty(folder)
    else:
        found = read_json(settings, Settings)
        if restart:
            _clear(folder)
        elif found.name != wanted.name:
            raise UserError(
                f"{folder}: an unfinished pass of {_told(found)}; this one is of {_told(wanted)}. "
                "Name another --run-folder, or give --restart to begin anew there"
            )
        else:
            logger.info("going on with the pass begun %s in %s", found.provenance.made, folder)
            return
    with set_aside(settings) as (aside,):
        aside.write_bytes(msgspec.json.encode(wanted))


def _check_empty(folder: Path) -> None:
    """In the end the folder is removed with all that is in it, so nothing of anybody else's may be there."""
    part = f".{SETTINGS_FILE}."  # of a process that was killed while it wrote the settings
    names = (entry.name for entry in folder.iterdir())
    others = sorted(name for name in names if name != LOCK_FILE and not name.startswith(part))
    if others:
        raise UserError(
            f"{folder}: holds {', '.join(others[:SHOWN])}{', …' if len(others) > SHOWN else ''}, and no unfinished "
            "pass; name a --run-folder that is new or empty"
        )


def _clear(folder: Path) -> None:
    """Remove what a pass puts there, the settings last: while they stand, what is beside them is known to be its."""
    shutil.rmtree(folder / STATE_FOLDER, ignore_errors=True)
    for name in (TOKENS_FILE, BEGINS_FILE, SETTINGS_FILE):
        (folder / name).unlink(missing_ok=True)


def _told(settings: Settings) -> str:
    p = settings.provenance
    pair = f"{p.pair.model_id} ({p.pair.model_sha256[:8]}), {p.pair.sae_id} ({p.pair.sae_sha256[:8]}), {p.dtype}"
    corpus = f"{p.samples} samples of {p.corpus} ({p.corpus_sha256[:8]}), seed {p.seed}, version {p.version}"
    return f"{pair}, {corpus} [{settings.name}]"
