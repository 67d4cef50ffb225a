"""What a text may go on with: what followed its last words where they stood before.

A model that quotes its prompt, or repeats itself, is foreseen by looking. The step that checks the proposal costs
little more than one that chooses a single token, since both read every weight once (lookup decoding, after Saxena's
prompt lookup, github.com/apoorvumang/prompt-lookup-decoding).
"""

from collections.abc import Sequence

MOST_PROPOSED = 7  # with the token before them 8 rows, the most the kernels are quick at
TAILS = (3, 2)  # ids that must have stood before, the longest tried first
MOST_RESTED = 32  # steps without a proposal after proposals that came to nothing


class Lookup:
    """The ids of a text by the ids before them. Proposals rest for a while after such as were wrong."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids: list[int] = []
        self._behind: dict[tuple[int, ...], int] = {}  # some ids in a row: where the one behind them stood last
        self._rest, self._resting = 0, 0
        for token_id in ids:
            self.append(token_id)

    def append(self, token_id: int) -> None:
        """The text goes on with this."""
        for tail in TAILS:
            if len(self._ids) >= tail:
                self._behind[tuple(self._ids[-tail:])] = len(self._ids)
        self._ids.append(token_id)

    def proposal(self) -> list[int]:
        """MOST_PROPOSED ids that may come next, or none. Asked once a step."""
        if self._resting:
            self._resting -= 1
            return []
        for tail in TAILS:
            begin = self._behind.get(tuple(self._ids[-tail:]))
            if begin is not None:
                follows = self._ids[begin:]  # where that is short the text repeats itself, and may do so again
                return [follows[i % len(follows)] for i in range(MOST_PROPOSED)]
        return []

    def came_true(self, count: int) -> None:
        """So many ids of the last proposal were right. None: the next one waits, twice as long each time."""
        self._rest = 0 if count else min(2 * self._rest + 1, MOST_RESTED)
        self._resting = self._rest
