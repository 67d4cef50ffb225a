"""Features named on a command line."""

import re

from neuroscope_jax.flags import UsageError


def selected(text: str, width: int) -> list[int]:
    """The features that e.g. "4521,3022,5-9" names, each once, in the order given. Raises UsageError."""
    found: dict[int, None] = {}
    for part in text.split(","):
        named = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part, re.ASCII)
        if not named:
            raise UsageError(f"--features {text!r}: {part!r} is no feature; expected numbers and ranges, as in 1,2,5-9")
        first, last = int(named[1]), int(named[2] or named[1])
        if last < first:
            raise UsageError(f"--features {text!r}: {part.strip()} ends before it begins")
        if last >= width:
            raise UsageError(f"--features {text!r}: there is no feature {last}; the SAE has features 0 to {width - 1}")
        found |= dict.fromkeys(range(first, last + 1))
    return list(found)
