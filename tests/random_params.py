"""Random weights for a tiny model."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


def random_params(model: nn.Module) -> dict[str, Any]:
    """A "params" tree; in one program, which op by op takes ten times as long."""
    ids = jnp.zeros((1, 2), jnp.int32)
    params: dict[str, Any] = jax.jit(lambda key: model.init(key, ids, ids, method="scores")["params"])(
        jax.random.key(0)
    )
    return params
