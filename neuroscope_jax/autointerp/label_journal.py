"""The journal of a run that labels or scores."""

from neuroscope_jax.autointerp.answers import validated
from neuroscope_jax.autointerp.journal import Journal
from neuroscope_jax.autointerp.question import Answer, Question


class LabelJournal(Journal):
    """A journal to which a label that cannot be shown is a failure too: with `retry_failed` it is asked for again."""

    def find(self, key: str, question: Question) -> Answer | None:
        """The answer to the question of this key; None where it has to be asked."""
        answer = super().find(key, question)
        if not self._retry_failed or question.part != "label" or answer is None or answer.fields is None:
            return answer
        return None if isinstance(validated(answer.fields), str) else answer
