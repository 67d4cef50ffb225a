"""How questions are put to the labelling model."""

import dataclasses

from neuroscope_jax.autointerp.prices import Prices
from neuroscope_jax.errors import UserError

MOST_AT_ONCE = 1000
MOST = 1e9  # dollars, seconds, requests a minute


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Raises UserError, naming the flag, for a value out of range."""

    model: str
    prices: Prices  # of single calls; a batch is charged half of them
    concurrency: int = 50  # calls in flight at most
    rpm: float | None = None  # requests a minute at most, retries among them
    timeout: float = 60.0  # seconds one try may take
    patience: float = 600.0  # seconds a question may take with all its tries and the waits that the server asks for
    max_retries: int = 8
    max_usd: float | None = None  # dollars a run may spend
    spent: float = 0.0  # of them, in earlier rounds of the run

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MOST_AT_ONCE:
            raise UserError(f"--concurrency {self.concurrency}: expected 1 to {MOST_AT_ONCE} calls at once")
        for flag, value in (("--rpm", self.rpm), ("--timeout", self.timeout), ("--max-usd", self.max_usd)):
            if value is not None and not 0 < value <= MOST:
                raise UserError(f"{flag} {value}: expected more than 0 and at most {MOST:,.0f}")
