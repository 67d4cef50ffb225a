"""Which tokens of a text are structure: fed in, because the model was trained with them, and in no statistic.

    <bos> <start_of_turn> user \\n  Hi  there <end_of_turn> \\n <start_of_turn> model \\n  Hello <end_of_turn>
      s         s          s   s   .    .        s         s         s         s    .    .        s

SAEs are trained on plain text. At control tokens the residual's norm is about ten times the usual one, and role words
and their newlines are as far off: unrelated features light up there. The newline that opens a reply counts, because the
reply's first word is chosen at it.
"""

import dataclasses

import numpy as np
from jaxtyping import Bool, Int

from neuroscope_jax.models.chat import ChatTokenizer

CONTEXT = 2  # tokens before one that it takes to tell what it is
NONE = -2  # before the first token; -1 is an id the vocabulary lacks


@dataclasses.dataclass(frozen=True)
class Structure:
    """The ids by which structure is told; an id that the vocabulary lacks is -1."""

    bos_id: int
    control_ids: frozenset[int]
    start_of_turn: int
    end_of_turn: int
    newline: int
    model: int  # the role word

    @classmethod
    def of(cls, tokenizer: ChatTokenizer) -> "Structure":
        """Those of a checkpoint's tokenizer."""
        names = "<start_of_turn>", "<end_of_turn>", "\n", "model"
        ids = (tokenizer.single_token(name) for name in names)
        return cls(tokenizer.bos_id, tokenizer.control_ids | tokenizer.stop_ids, *ids)

    def where(self, ids: Int[np.ndarray, "B T"]) -> Bool[np.ndarray, "B T"]:
        """Which tokens are structure; the first CONTEXT of a row only help to tell the others."""
        before = np.pad(ids, ((0, 0), (1, 0)), constant_values=NONE)[:, :-1]
        second = np.pad(ids, ((0, 0), (2, 0)), constant_values=NONE)[:, :-2]
        role = before == self.start_of_turn
        ends_header = (second == self.start_of_turn) & (before != self.model)
        newline = (ids == self.newline) & (ends_header | (before == self.end_of_turn))
        structure: Bool[np.ndarray, "B T"] = np.isin(ids, list(self.control_ids)) | role | newline
        return structure
