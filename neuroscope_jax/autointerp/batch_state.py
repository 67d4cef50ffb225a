"""Which message batches are under way, on disk: a run that was killed finds them again and pays for none twice."""

import dataclasses
import datetime
import logging
from pathlib import Path

import msgspec

from neuroscope_jax.autointerp.question import Question
from neuroscope_jax.files import read_json, set_aside

logger = logging.getLogger(__name__)

CLOCKS_APART = datetime.timedelta(hours=1)  # at most, the API's and this machine's


@dataclasses.dataclass(frozen=True)
class BatchStatus:
    """What the API tells of a batch."""

    id: str
    created: datetime.datetime
    count: int  # of its requests
    ended: bool


class UnderWay(msgspec.Struct):
    """A batch that was sent, or that was about to be when the process ended: then it has no `id` yet."""

    made: datetime.datetime
    asked: dict[str, tuple[int, str]]  # key: feature and part
    dollars: float  # its cost, roughly
    id: str | None = None

    def is_this(self, found: BatchStatus) -> bool:
        """Whether a batch that the API knows may be the one that was about to be sent."""
        return found.count == len(self.asked) and found.created > self.made - CLOCKS_APART


class _File(msgspec.Struct):
    under_way: list[UnderWay] = []
    collected: list[str] = []  # the ids of those that are done


class BatchState:
    """The batches under way, in a file beside the journal. Raises UserError where it cannot be read or written."""

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(f"{journal.stem}_batches.json")
        self._file = read_json(self.path, _File) if self.path.exists() else _File()

    @property
    def under_way(self) -> list[UnderWay]:
        return self._file.under_way

    def keys(self) -> set[str]:
        """Of all questions under way, which are paid for."""
        return {key for batch in self.under_way for key in batch.asked}

    def is_new(self, batch: BatchStatus) -> bool:
        """True for a batch that has never been in this file."""
        return batch.id not in self._file.collected and all(batch.id != known.id for known in self.under_way)

    def add(self, questions: dict[str, Question], dollars: float) -> UnderWay:
        """To be called before a batch is created; `named` after it."""
        asked = {key: (question.feature, question.part) for key, question in questions.items()}
        batch = UnderWay(datetime.datetime.now(datetime.UTC), asked, dollars)
        self.under_way.append(batch)
        self._save()
        return batch

    def named(self, batch: UnderWay, name: str) -> None:
        """The API has created the batch."""
        logger.info("message batch %s: %d questions", name, len(batch.asked))
        batch.id = name
        self._save()

    def done(self, batch: UnderWay) -> None:
        """Its answers are in the journal, or it was never created."""
        self.under_way.remove(batch)
        if batch.id:
            self._file.collected.append(batch.id)
        self._save()

    def _save(self) -> None:
        with set_aside(self.path) as (aside,):
            aside.write_bytes(msgspec.json.encode(self._file))
