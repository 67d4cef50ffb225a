"""Every answer so far in a file of JSON lines: what was paid for once is read from it ever after.

Lines are only ever appended, each written whole before the next question is asked, so that a killed run loses nothing
but the calls in flight; the index in memory holds places in the file, not answers.
"""

import contextlib
import dataclasses
import os
import time
from pathlib import Path
from types import TracebackType

import filelock
import msgspec

from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.replies import by_the_model, misfit
from neuroscope_jax.errors import UserError

SYNCED_EVERY = 1.0  # seconds: a killed process loses no line, a power cut those of the last second

START = b'{"key":"'  # of a line, spaces aside

_decoder = msgspec.json.Decoder(Answer)


class Journal:
    """A context: while it is open no other process may open the same file, unless that is `read_only`.

    Failures on the way to the model (no connection, say) are written for the record and asked again; with
    `retry_failed` those of the model are as well. A `read_only` one leaves everything as it is. Raises UserError where
    the file is in use, damaged or not writable.
    """

    def __init__(self, path: Path, retry_failed: bool = False, read_only: bool = False) -> None:
        self.path, self._read_only = path, read_only
        self._retry_failed = retry_failed
        self._lock = filelock.FileLock(path.with_name(path.name + ".lock"), blocking=False)
        self._places: dict[bytes, int] = {}  # key: offset of its line
        self._end = 0
        self._synced = time.monotonic()

    def __enter__(self) -> "Journal":
        try:
            with contextlib.ExitStack() as stack:
                if not self._read_only:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    stack.enter_context(self._lock)
                    self._out = stack.enter_context(self.path.open("ab", buffering=0))
                if not self._read_only or self.path.exists():
                    self._lines = stack.enter_context(self.path.open("rb"))
                    self._index()
                self._open = stack.pop_all()
        except filelock.Timeout as error:
            raise UserError(f"{self.path}: another process is at work with it; wait for it, or end it") from error
        except OSError as error:
            raise self._trouble(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._open:
                if not self._read_only:
                    os.fsync(self._out.fileno())
        except OSError as trouble:
            raise self._trouble(trouble) from trouble

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._places

    def find(self, key: str, question: Question) -> Answer | None:
        """The answer to the question of this key, checked against it; None where it has to be asked."""
        place = self._places.get(bytes.fromhex(key))
        if place is None:
            return None
        self._lines.seek(place)
        answer = checked(_decoder.decode(self._lines.readline()), question)
        return None if answer.failure and self._retry_failed else answer

    def add(self, answer: Answer) -> None:
        """Append an answer as it came, before anything is made of it."""
        line = msgspec.json.encode(answer) + b"\n"
        try:
            written = self._out.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes written")
            if time.monotonic() - self._synced > SYNCED_EVERY:
                os.fsync(self._out.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            with contextlib.suppress(OSError):  # the next run does it otherwise
                os.truncate(self.path, self._end)
            raise self._trouble(error) from error
        self._keep(answer, self._end)
        self._end += len(line)

    def _index(self) -> None:
        for number, line in enumerate(self._lines, 1):
            whole = line.endswith(b"\n")
            if not whole and _is_torn(line):  # the process was killed, or the disk was full, in the middle of it
                if not self._read_only:
                    os.truncate(self.path, self._end)
                break
            try:
                self._keep(_decoder.decode(line), self._end)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise UserError(
                    f"{self.path}: line {number} is not an answer ({error}); remove that line to have it asked again, "
                    "or move the file away to begin anew"
                ) from error
            self._end += len(line)
            if not whole and not self._read_only:
                self._end += self._out.write(b"\n")
                break

    def _keep(self, answer: Answer, place: int) -> None:
        if by_the_model(answer.failure):
            self._places[bytes.fromhex(answer.key)] = place

    def _trouble(self, error: OSError) -> UserError:
        return UserError(
            f"{self.path}: cannot be written: {error.strerror or error}; the answers in it are safe. Make room or set "
            "NEUROSCOPE_CACHE to another place, then run the same command again"
        )


def _is_torn(line: bytes) -> bool:
    """Whether a last line is the beginning of an answer, or what a power cut leaves of one, not something else."""
    if not line.strip(b"\0"):
        return True
    if not START.startswith(line.replace(b" ", b"")[: len(START)]):
        return False
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError):
        return True
    except RecursionError:
        return False
    return False


def checked(answer: Answer, question: Question) -> Answer:
    """The answer as one to this very question: fields that its schema does not allow are a failure."""
    failure = answer.failure
    if answer.fields is not None:
        failure = misfit(answer.fields, question.schema)
    fields = None if failure else answer.fields
    return dataclasses.replace(answer, feature=question.feature, part=question.part, fields=fields, failure=failure)
