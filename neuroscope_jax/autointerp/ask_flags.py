"""The flags of the commands that put questions to Claude."""

import dataclasses

from neuroscope_jax.autointerp.asking import Asking
from neuroscope_jax.autointerp.prices import prices_of
from neuroscope_jax.autointerp.settings import Settings
from neuroscope_jax.logs import LogLevel

MODEL = "claude-haiku-4-5-20251001"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskFlags:
    """What is asked about, how, and what it may cost.

    Args:
        features: only these, as in 1,2,5-9
        replace_flagged: take labels made here that score below 0.60 out of their file: their features go by number
        concurrency: calls in flight at most
        rpm: requests a minute at most, retries among them
        timeout: seconds one try of a call may take
        batch: as message batches, at half the price, within a day
        max_usd: dollars the run may cost; estimated before the first call, and watched
        prices: IN,OUT in dollars per million tokens, for models whose prices are not known here
        retry_failed: ask again where an earlier run got an answer of no use
        dry_run: only print the estimate and one prompt, of a finished pass; no key needed, nothing sent
        log_level: how much is logged to stderr
    """

    features: str | None = None
    replace_flagged: bool = False
    concurrency: int = 50
    rpm: float | None = None
    timeout: float = 60.0
    batch: bool = False
    max_usd: float = 20.0
    prices: str | None = None
    retry_failed: bool = False
    dry_run: bool = False
    log_level: LogLevel = "info"

    def asking(self, model: str) -> Asking:
        """Raises UserError for a value out of range, a model without known prices, and where there is no key."""
        settings = Settings(
            model=model,
            prices=prices_of(model, self.prices),
            concurrency=self.concurrency,
            rpm=self.rpm,
            timeout=self.timeout,
            max_usd=self.max_usd,
        )
        if not self.dry_run:
            from neuroscope_jax.autointerp.claude import require_key  # brings the client library in

            require_key()
        return Asking(settings, self.batch, self.retry_failed, self.dry_run)
