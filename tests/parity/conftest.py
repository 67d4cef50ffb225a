"""Oracles from Hugging Face: a config of many switches, as a saved checkpoint and as a running torch model."""

import importlib.util
from pathlib import Path
from typing import Any

NEEDED = "the parity tests compare with transformers and torch: pip install -e '.[test,parity]'"
ABSENT = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Nothing here can be imported without torch; `pytest_terminal_summary` tells so."""
    return True if ABSENT and collection_path.suffix == ".py" else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly that a whole folder was left out."""
    if ABSENT:
        terminalreporter.write_line(
            f"SKIPPED tests/parity: no {' and no '.join(ABSENT)}; {NEEDED}", yellow=True, bold=True
        )
