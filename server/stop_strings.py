"""Stop strings over streamed text: nothing that could be the start of one is let out before it is known not to be."""

from collections.abc import Sequence


class StopStrings:
    """Feed it text as it comes; it gives back what may be shown.

    The match that ends first counts, of several that end together the longest; the text ends right before it. The
    outcome does not depend on how the text is cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The text that is now certain to be part of the answer. After a match (`found`) there is none."""
        if self.found:
            return ""
        self._held += text
        ends = [(at + len(stop), at) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if ends:
            self.found = True
            return self._release(min(ends)[1])
        return self._release(len(self._held) - self._possible_start())

    def flush(self) -> str:
        """What was held back, where the answer ended without a match."""
        return "" if self.found else self._release(len(self._held))

    def _release(self, count: int) -> str:
        released, self._held = self._held[:count], self._held[count:]
        return released

    def _possible_start(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        for size in range(min(len(self._held), self._longest - 1), 0, -1):
            if any(stop.startswith(self._held[-size:]) for stop in self._stops):
                return size
        return 0
