"""`--quantization` in its own words, and in those of other programs."""

import logging
from typing import get_args

from neuroscope_jax.config import Quantization
from neuroscope_jax.errors import UserError

logger = logging.getLogger(__name__)

NEAREST: dict[str, Quantization] = {"q8_0": "int8", "q4k": "int4", "q4_k": "int4", "q4_k_m": "int4", "q4_0": "int4"}


def parse(name: str) -> Quantization:
    """`none`, `int8` or `int4` from what a person types; llama.cpp's names stand for the nearest, which is logged.

    Raises UserError for anything else.
    """
    match name.lower():
        case "none" | "int8" | "int4" as known:
            return known
        case other if other in NEAREST:
            logger.info("quantization: %s, the nearest here to %s", NEAREST[other], name)
            return NEAREST[other]
    raise UserError(
        f"--quantization {name}: expected one of {', '.join(get_args(Quantization))}, or q8_0 or q4k for the nearest"
    )
