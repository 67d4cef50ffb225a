"""The strongest example of a feature in each of a few chats, saved so that a reader can check its label."""

import json
from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer

from neuroscope_jax.demo.evidence import Firing
from neuroscope_jax.demo.residuals import Residuals

SAVED = 5
LEFT, RIGHT = 12, 6  # tokens of context
Example = tuple[float, str, str, str]  # activation, text before the token, the token, text after it


def strongest(firing: Firing, residuals: Residuals) -> list[int]:
    """Where the feature is strongest, one place a chat, at most SAVED."""
    places: dict[int, int] = {}
    for at in firing.at:
        places.setdefault(int(residuals.rows[at]), int(at))
        if len(places) == SAVED:
            break
    return list(places.values())


def example(at: int, value: float, residuals: Residuals, tokenizer: Tokenizer) -> Example:
    """One place as text."""
    ids, place = residuals.chats[residuals.rows[at]].ids, int(residuals.places[at])

    def text(start: int, end: int) -> str:
        return str(tokenizer.decode(ids[start:end], skip_special_tokens=False))

    return (
        round(value, 2),
        text(max(0, place - LEFT), place),
        text(place, place + 1),
        text(place + 1, place + 1 + RIGHT),
    )


def save(path: Path, entries: Mapping[int, Mapping[str, object]]) -> None:
    """One feature a line."""
    lines = [f'"{feature}": {json.dumps(entry, ensure_ascii=False)}' for feature, entry in sorted(entries.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
