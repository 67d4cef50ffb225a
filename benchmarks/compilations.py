"""What JAX compiles and what it takes from its compile cache, counted as it tells it."""

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"  # told for cached programs too, with the time of reading them
REUSED = "/jax/compilation_cache/cache_hits"


class Compilations:
    """Counts from its creation on."""

    def __init__(self) -> None:
        self.requested = 0
        self.reused = 0
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._timed)
        jax.monitoring.register_event_listener(self._told)

    def _timed(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILED:
            self.requested += 1
            self.seconds += duration_secs

    def _told(self, event: str, **_: str | int) -> None:
        self.reused += event == REUSED
