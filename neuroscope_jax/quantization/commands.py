"""`quantization report`."""

import msgspec

from neuroscope_jax import flags
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.logs import LogLevel, log_to_stderr
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PairFlags, WorkFlags

WORK = {name: getattr(NeuroscopeConfig, name) for name in ("sae_input_norm", "platform", "dtype")}
TOKENS = 1024


@flags.command(**SHOWN_DEFAULTS, **WORK)
@expanded
def report(
    *,
    pair: PairFlags,
    work: WorkFlags,
    quantization: str = "int8",
    text: str | None = None,
    tokens: int = TOKENS,
    json: bool = False,
    log_level: LogLevel = "warning",
) -> str:
    """What quantised weights change: next tokens, features and the residual stream, beside the unquantised model.

    Both models are in memory at once. The quantised weights are kept in the cache folder, where `serve` finds them.

    Args:
        quantization: int8 or int4
        text: file or folder of .txt, .jsonl(.gz) or .parquet to run over, instead of a preset's corpus or the passages
            that come with the program
        tokens: how many of it at most
        json: print JSON instead of text
        log_level: how much is logged to stderr
    """
    log_to_stderr(log_level)
    if tokens < 1:
        raise UserError(f"--tokens {tokens}: expected 1 or more")
    resolved = pair.resolved(**vars(work), quantization=quantization)
    if resolved.quantization == "none":
        raise UserError("--quantization none: there is nothing to compare; expected int8 or int4")
    from neuroscope_jax import platforms

    platforms.choose(resolved.platform)
    # Only now: these touch JAX, and must find the platform chosen.
    from neuroscope_jax.quantization.report import as_text, make

    found = make(resolved, text, tokens)
    return msgspec.json.format(msgspec.json.encode(found)).decode() if json else as_text(found)
