"""`python -m server`: the same command as `neuroscope_jax serve`, and the order in which a server comes up."""

import logging
import os
import sys

from neuroscope_jax import cli
from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.native import library
from server import app
from server.ports import Ports, bind_ports
from server.state import ServerState

logger = logging.getLogger("server")


def start(config: NeuroscopeConfig) -> None:
    """Take the ports and open them, choose the platform, load the pair, serve until SIGINT or SIGTERM.

    Raises UserError for what is absent or does not fit; no port stays open then.
    """
    ports = bind_ports(config)  # before anything slow, so that a port in use shows at once
    logger.debug("loading; until then both ports answer 503")
    try:
        state = app.run(config, lambda: _load(config), ports, lambda: _announce(ports))
    finally:
        ports.close()
    if state is None or state.engine.alive:  # in the middle of a long step; Python would wait for it, or crash under it
        logging.shutdown()
        os._exit(0)


def _load(config: NeuroscopeConfig) -> ServerState:
    if config.platform in ("auto", "cpu"):
        library.begin(library.KERNELS)  # beside the imports of JAX, which leave the other cores idle
    from neuroscope_jax import platforms

    device = platforms.choose(config.platform)
    # Only now: this touches JAX, and must find the platform chosen.
    from neuroscope_jax.engine.load import load

    loaded = load(config)
    used = loaded.config
    dtype = used.dtype if used.quantization == "none" else f"{used.dtype} with {used.quantization} weights"
    logger.info("model %s in %s on %s", used.model_id, dtype, platforms.describe(device, used.model_parallel))
    logger.info("SAE %s after layer %d, %d features", used.sae_id, used.target_layer, loaded.labels.width)
    return ServerState(used, loaded.engine, loaded.tokenizer, loaded.labels, loaded.sampling)


def _announce(ports: Ports) -> None:
    logger.info("chat     %s/v1/chat/completions", ports.chat.url)
    logger.info("features %s/v1/features/stream", ports.features.url)


if __name__ == "__main__":
    sys.argv.insert(1, "serve")
    sys.exit(cli.main())
