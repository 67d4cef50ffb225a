"""Side-by-side measurements; `python -m benchmarks.decode` from the repository's folder."""

import neuroscope_jax.platforms  # noqa: F401  # before anything else loads jaxlib, which it quietens
