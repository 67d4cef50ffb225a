"""Attention in a process that may take no more memory, in a process of its own: prints what that raises, and a result.

Its working memory, of 2,048 blocks of slots for 256 rows of 256 numbers, is more than a heap has to spare.
"""

import resource
from pathlib import Path

import jax
import jax.numpy as jnp

from neuroscope_jax.native.attention import attend_cached, takes

SLOTS, QUERIES, HEADS, SIZE = 131_072, 8, 32, 256


def main() -> None:
    """Warm up, forbid more memory, ask for too much, and then for little."""
    assert takes(1, QUERIES, "float32")
    query, cache = jnp.ones((1, QUERIES, HEADS, SIZE)), jnp.ones((1, SLOTS, 1, SIZE))
    attend = jax.jit(lambda query, cache, start: attend_cached(query, cache, cache, start, 1.0, None, None)[0, 0, 0, 0])
    attend(query, cache, jnp.asarray(0)).block_until_ready()
    late, early = jnp.asarray(SLOTS - QUERIES), jnp.asarray(5)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.RLIM_INFINITY))
    try:
        attend(query, cache, late).block_until_ready()
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        print(str(error).splitlines()[0])
    print(float(attend(query, cache, early)))


if __name__ == "__main__":
    main()
