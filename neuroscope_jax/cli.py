"""The commands. Each parses, checks and calls; the work is done elsewhere."""

import dataclasses
import os
import signal
import sys
from typing import Any

import fire

from neuroscope_jax import __version__, flags
from neuroscope_jax.autointerp import commands as autointerp_commands
from neuroscope_jax.config import FilterMode, NeuroscopeConfig
from neuroscope_jax.corpus import commands as corpus_commands
from neuroscope_jax.corpus import pass_commands
from neuroscope_jax.errors import UserError
from neuroscope_jax.features import commands as calibration_commands
from neuroscope_jax.features import label_commands
from neuroscope_jax.flag_groups import expanded
from neuroscope_jax.logs import LogLevel, log_to_stderr
from neuroscope_jax.models import commands as model_commands
from neuroscope_jax.pages import commands as page_commands
from neuroscope_jax.pair_flags import SHOWN_DEFAULTS, PairFlags, WorkFlags
from neuroscope_jax.quantization import commands as quantization_commands
from neuroscope_jax.sae import commands as sae_commands

PROGRAM = "neuroscope_jax"
DEFAULTS = NeuroscopeConfig()
KEY_VARIABLE = "NEUROSCOPE_API_KEY"


@flags.command(
    **dataclasses.asdict(DEFAULTS)
    | SHOWN_DEFAULTS
    | {"model_aliases": None, "allowed_hosts": None, "allowed_origins": None},
)
@expanded
def serve(
    *,
    pair: PairFlags,
    work: WorkFlags,
    top_k: int | None = None,
    feature_filter: FilterMode | None = None,
    filter_threshold: float | None = None,
    calibration_path: str | None = None,
    host: str | None = None,
    port: int | None = None,
    features_port: int | None = None,
    api_key: str | None = None,
    model_aliases: str | None = None,
    allowed_hosts: str | None = None,
    allowed_origins: str | None = None,
    queue_size: int | None = None,
    heartbeat_seconds: float | None = None,
    offline: bool = False,
    quantization: str | None = None,
    model_parallel: int | None = None,
    lookahead: bool | None = None,
    context_length: int | None = None,
    broadcast_buffer_size: int | None = None,
    log_level: LogLevel = "info",
) -> None:
    """Chat on one port, live SAE features on the other.

    Without flags: the values in brackets. A preset changes them, and single flags change the preset.

    Args:
        top_k: features reported with each token
        feature_filter: which features are left out of the report, or ranked by surprise; needs calibration data
        filter_threshold: firing rate above which a feature counts as always on
        calibration_path: statistics file, instead of the one in the cache folder
        host: address to listen on; anything but loopback lets others use this server
        port: chat port, 0 for any that is free
        features_port: features port, 0 for any that is free
        api_key: asked for on both ports; better given as NEUROSCOPE_API_KEY, which no list of processes shows
        model_aliases: further names, comma-separated, that clients may ask for the model by
        allowed_hosts: names, comma-separated, that clients may call this server by, beside this machine's own
        allowed_origins: pages, comma-separated, that may use it beside those from this machine; * for any
        queue_size: requests that may wait for their turn before others are refused
        heartbeat_seconds: between comments in a stream with nothing to say; 0 for none
        offline: ask no network; use what is on this machine
        quantization: of the weights: none, int8 (a scale for each row) or int4 (for each 32 columns); q8_0 and q4k are
            taken as the nearest
        model_parallel: devices of this machine that the model is split over, where it is too big for one
        lookahead: where the text has stood like this before, try what came then: quotes come several tokens to a step
        context_length: longest prompt and answer together, in tokens
        broadcast_buffer_size: events kept for a features reader that lags, before the oldest are dropped
        log_level: how much is logged to stderr
    """
    own = {name: value for name, value in locals().items() if name not in ("pair", "work")}
    given = {name: value for name, value in (own | vars(pair) | vars(work)).items() if value is not None}
    log_to_stderr(given.pop("log_level"))
    resolved = _serve_config(given)
    from server.__main__ import start  # the one step up: commands are above everything

    start(resolved)


def version() -> str:
    """Print the version."""
    return __version__


COMMANDS: flags.Commands = {
    "serve": serve,
    "models": {"list": model_commands.list_models, "pull": model_commands.pull},
    "sae": {"list": sae_commands.list_saes, "pull": sae_commands.pull},
    "corpus": {"build": corpus_commands.build, "show": corpus_commands.show},
    "labels": {
        "pull": label_commands.pull,
        "generate": autointerp_commands.generate,
        "score": autointerp_commands.score,
        "show": page_commands.show,
        "report": page_commands.report,
    },
    "calibrate": {
        "run": pass_commands.run,
        "merge": pass_commands.merge,
        "show": calibration_commands.show,
    },
    "quantization": {"report": quantization_commands.report},
    "version": version,
}


def main() -> int:
    """The console scripts: run the command line, return the exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Ctrl-C ends the process at once and in silence. As an exception it would wait for XLA to finish compiling and
        # then tear down the interpreter under XLA's threads, which crashes. A running server handles the signal itself.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(sys.argv[1:])


def run(argv: list[str]) -> int:
    """Run one command; returns the exit status: 0, 1 for what cannot be done, 2 for a mistyped command line."""
    try:
        words, found, rest = flags.find(COMMANDS, argv)
        if flags.wants_help(rest) or not callable(found):
            print(flags.help_text(PROGRAM, words, found))
            return 0
        fire.Fire(COMMANDS, command=[*words, *flags.checked(found, rest)], name=PROGRAM)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, flags.UsageError) else 1
    return 0


def _serve_config(given: dict[str, Any]) -> NeuroscopeConfig:
    """The config that serve's flags mean. Raises UserError."""
    from neuroscope_jax import pairs
    from neuroscope_jax.models import hub

    if given.pop("offline"):
        hub.go_offline()
    for name in ("model_aliases", "allowed_hosts", "allowed_origins"):
        if name in given:
            given[name] = tuple(word.strip() for word in given[name].split(","))
    return pairs.from_flags(_key_from_environment() | given)


def _key_from_environment() -> dict[str, str]:
    key = os.environ.get(KEY_VARIABLE)
    if key == "":
        raise UserError(f"{KEY_VARIABLE} is set but empty; give it a key, or unset it to serve without one")
    return {} if key is None else {"api_key": key}
