"""Data as scripts: pages opened from file:// may load a script but not fetch JSON, so each file calls a function."""

import json
from pathlib import Path
from typing import Any

# "</script" and "<!--" would end or change a script that stands within a page. What is not ASCII is escaped already.
ESCAPES = (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026"))


def call(function: str, *arguments: Any) -> str:
    """A statement that calls a function with values. ASCII, and harmless whatever the values hold."""
    return f"{function}({','.join(map(literal, arguments))});\n"


def literal(value: Any) -> str:
    """A JSON value as an expression. Raises ValueError for NaN and infinities, which JSON does not have."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character, escape in ESCAPES:
        text = text.replace(character, escape)
    return text


def write_call(path: Path, function: str, *arguments: Any) -> None:
    """Write a script that is one call."""
    path.write_text(call(function, *arguments), encoding="ascii")
