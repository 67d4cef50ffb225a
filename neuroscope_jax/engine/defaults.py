"""How a checkpoint wants to be sampled where a request does not say."""

from pathlib import Path

import msgspec

from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.errors import UserError
from neuroscope_jax.files import read_json


class Stated(msgspec.Struct, omit_defaults=True):
    """What is read of generation_config.json."""

    do_sample: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


def sampling_defaults(folder: Path) -> SamplingOptions:
    """OpenAI's defaults, with what generation_config.json says of temperature, top_p, top_k and do_sample instead.

    Raises UserError where the file is there and says something that cannot be.
    """
    path = folder / "generation_config.json"
    stated = read_json(path, Stated) if path.is_file() else Stated()
    fields = msgspec.to_builtins(stated)
    if fields.pop("do_sample", None) is False:
        fields["temperature"] = 0.0
    try:
        return SamplingOptions(**fields)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error
