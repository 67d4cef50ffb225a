"""What models charge, in dollars per million tokens."""

import dataclasses
import re

from neuroscope_jax.errors import UserError

MILLION = 1_000_000
MOST = 1e6  # dollars that a million tokens may cost


@dataclasses.dataclass(frozen=True)
class Prices:
    """Dollars per million tokens read and written."""

    input: float
    output: float

    def dollars(self, input_tokens: float, output_tokens: float) -> float:
        """What so many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / MILLION

    def halved(self) -> "Prices":
        """The prices of a message batch."""
        return Prices(self.input / 2, self.output / 2)


# platform.claude.com, models overview; Haiku 5.5's are those of prompts below 100,000 tokens.
KNOWN = {
    "claude-haiku-4-5": Prices(1.0, 5.0),
    "claude-haiku-5-5": Prices(0.1, 0.5),
    "claude-sonnet-5-5": Prices(2.0, 10.0),
    "claude-opus-5": Prices(5.0, 25.0),
    "claude-opus-5-5": Prices(4.0, 20.0),
}


def undated(model: str) -> str:
    """A model's name without the date of its snapshot: claude-haiku-4-5-20251001 to claude-haiku-4-5."""
    return re.sub(r"-\d{8}$", "", model)


def prices_of(model: str, given: str | None = None) -> Prices:
    """The prices of a model, those `given` as "IN,OUT" before the known ones.

    Raises UserError where a model is not known and nothing is given.
    """
    if given is not None:
        return _parsed(given)
    if undated(model) not in KNOWN:
        raise UserError(
            f"the prices of {model} are not known here (known: {', '.join(KNOWN)}); give them as --prices IN,OUT, in "
            "dollars per million tokens read and written, as in --prices 1,5"
        )
    return KNOWN[undated(model)]


def _parsed(given: str) -> Prices:
    number = r"\s*(\d+(?:\.\d+)?|\.\d+)\s*"
    match = re.fullmatch(f"{number},{number}", given, re.ASCII)
    if not match:
        raise UserError(f"--prices {given!r}: expected two numbers, dollars per million tokens, as in --prices 1,5")
    prices = Prices(float(match[1]), float(match[2]))
    if max(prices.input, prices.output) > MOST:
        raise UserError(f"--prices: expected at most {MOST:,.0f} dollars per million tokens")
    return prices
