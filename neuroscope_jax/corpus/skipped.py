"""What was left out of a corpus and why: the first few by name, the rest by number."""

import logging
from collections import Counter

logger = logging.getLogger(__name__)

NAMED = 20


class Skipped:
    """Files and lines left out while one source was read."""

    def __init__(self, source: str, quiet: bool = False) -> None:
        self.source, self.quiet = source, quiet
        self.counts: Counter[str] = Counter()  # by reason
        self.first = ""

    def add(self, place: str, reason: str, detail: str = "") -> None:
        """One more, logged while there are few. `reason` is of a small set; `detail` may be of this one alone."""
        place = place if place.isprintable() else ascii(place)
        told = f"{place}: {reason}" + (f" ({detail})" if detail else "")
        self.first = self.first or told
        if not self.quiet and self.counts.total() < NAMED:
            logger.warning("%s: skipped %s", self.source, told)
        self.counts[reason] += 1

    def summary(self) -> str:
        """Such as `12 an ending that is not read, 3 empty`, the most frequent reason first; empty for nothing."""
        return ", ".join(f"{count:,} {reason}" for reason, count in self.counts.most_common())

    def log_rest(self) -> None:
        """One line for all, where not every one of them was named."""
        if self.counts.total() > NAMED:
            logger.warning("%s: skipped %d in all: %s", self.source, self.counts.total(), self.summary())
