"""How a checkpoint wants to be sampled where a request does not say."""

import json
from pathlib import Path

from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError


def sampling_defaults(folder: Path) -> SamplingOptions:
    """OpenAI's defaults, with what generation_config.json says of temperature, top_p, top_k and do_sample instead.

    Raises UserError where the file is there and says something that cannot be.
    """
    path = folder / "generation_config.json"
    if not path.is_file():
        return SamplingOptions()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        stated = {name: kind(found[name]) for name, kind in KINDS.items() if found.get(name) is not None}
        if found.get("do_sample") is False:
            stated["temperature"] = 0.0
        return SamplingOptions(**stated)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: no generation settings can be read from it: {error}") from error


KINDS = {"temperature": float, "top_p": float, "top_k": int}
