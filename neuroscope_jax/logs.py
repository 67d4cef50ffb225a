"""Where a command's log lines go."""

import logging
from typing import Literal

LogLevel = Literal["debug", "info", "warning", "error"]


def log_to_stderr(level: LogLevel) -> None:
    """Our own events at the level asked for, other libraries' from warnings up."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    for name in ("neuroscope_jax", "server"):
        logging.getLogger(name).setLevel(level.upper())
