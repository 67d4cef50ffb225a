"""The rounds of questions of one run, labels and then scores: one journal, one budget, one sum of what was used."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable

from neuroscope_jax.autointerp.asking import Asking
from neuroscope_jax.autointerp.batch_state import BatchState
from neuroscope_jax.autointerp.journal import Journal
from neuroscope_jax.autointerp.labelling import Labelling
from neuroscope_jax.autointerp.question import Answer, Question
from neuroscope_jax.autointerp.scoring import Scoring
from neuroscope_jax.autointerp.spending import Count, Estimate, Usage, by_tokenizer, estimate, money
from neuroscope_jax.corpus.progress import progress
from neuroscope_jax.errors import UserError
from neuroscope_jax.models.chat import ChatTokenizer

logger = logging.getLogger(__name__)


class Rounds:
    """Estimates rounds before they are asked, holds their sum under the budget, and asks them."""

    def __init__(self, asking: Asking, journal: Journal, tokenizer: ChatTokenizer) -> None:
        self.usage = Usage()
        self._asking, self._journal, self._tokenizer = asking, journal, tokenizer
        self._under_way = BatchState(journal.path).keys() if asking.batch else set()

    def known(self, question: Question) -> Answer | None:
        """The answer that an earlier run got."""
        return self._journal.find(question.key(self._asking.settings.model), question)

    def estimate(self, questions: Iterable[Question]) -> Estimate:
        """Of these, less what is answered already or on its way."""
        prices = self._asking.settings.prices
        prices = prices.halved() if self._asking.batch else prices
        return estimate(questions, self._paid_for, prices, *self._count())

    def check(self, expected: Estimate) -> None:
        """Say what a run will cost; raises UserError where it may not. Nothing has been paid for until then."""
        logger.info("estimate: %s", expected)
        limit = self._asking.settings.max_usd
        if limit is not None and expected.dollars > limit:
            cheaper = "" if self._asking.batch else ", or at half the price with --batch"
            raise UserError(
                f"--max-usd {limit:g}: this run is estimated at {expected.beside(limit)}. Nothing was asked; raise "
                f"--max-usd, or ask for less with --features{cheaper}"
            )

    def ask(self, what: str, asked: Labelling | Scoring, expected: Estimate) -> None:
        """Put all questions of a round. Raises UserError where the run must end; answers so far are in the journal."""
        settings = dataclasses.replace(self._asking.settings, spent=self.usage.dollars)
        with progress(what, expected.calls + expected.known, "answers") as bar:

            def take(question: Question, answer: Answer) -> None:
                asked.take(question, answer)
                bar.update()

            self.usage += self._way()(asked.questions(), settings, self._journal, take)

    def _way(self) -> Callable[..., Usage]:
        from neuroscope_jax.autointerp import batches, claude  # they bring the client library in

        return batches.ask if self._asking.batch else claude.ask

    @property
    def passed(self) -> str | None:
        """In words, that the run has spent more than it might; None where it has not."""
        limit, spent = self._asking.settings.max_usd, self.usage.dollars
        if limit is None or spent <= limit:
            return None
        return f"--max-usd {limit:g} was passed: {money(spent, limit)} spent"

    def _paid_for(self, question: Question) -> bool:
        return question.key(self._asking.settings.model) in self._under_way or self.known(question) is not None

    def _count(self) -> tuple[Count, str]:
        """How tokens are counted, and by whom; a dry run sends nothing."""
        if self._asking.dry_run:
            return by_tokenizer(lambda text: len(self._tokenizer.encode_documents([text])[0])), "the model's tokenizer"
        from neuroscope_jax.autointerp.claude import count_tokens

        return functools.partial(count_tokens, settings=self._asking.settings), "the Anthropic API"


def scaled(expected: Estimate, factor: float) -> Estimate:
    """The estimate of so many times as many questions."""
    return dataclasses.replace(
        expected,
        calls=round(expected.calls * factor),
        known=round(expected.known * factor),
        input_tokens=round(expected.input_tokens * factor),
        output_tokens=round(expected.output_tokens * factor),
        dollars=expected.dollars * factor,
    )
