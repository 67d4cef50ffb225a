"""The residual stream of the demo model at the SAE's layer, over encoded chats."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from neuroscope_jax.demo.batches import CONTROL, Encoded, batches
from neuroscope_jax.models.gemma2 import Gemma2
from neuroscope_jax.models.weights import Params

LAYER = 3  # two thirds of six; the output of 0-indexed block 3
TOKENS_A_BATCH = 4096


@dataclass(frozen=True)
class Residuals:
    """Residual vectors of every token that counts, and where each comes from."""

    x: Float[np.ndarray, "N D"]
    rows: Int[np.ndarray, " N"]  # index into `chats`
    places: Int[np.ndarray, " N"]  # index into that chat's ids
    chats: list[Encoded]


@partial(jax.jit, static_argnums=0)
def _resid_post(model: Gemma2, params: Params, ids: Int[Array, "B T"]) -> Float[Array, "B T D"]:
    positions = jnp.broadcast_to(jnp.arange(ids.shape[1]), ids.shape)
    _, sown = model.apply({"params": params}, ids, positions, mutable=["intermediates"])
    residual: Array = sown["intermediates"][f"layers_{LAYER}"]["resid_post"][0]
    return residual


def collect(model: Gemma2, params: Params, chats: list[Encoded]) -> Residuals:
    """Run the chats through the model up to LAYER. BOS, turn marks and padding are left out: their norms are unlike
    all others. The newline that opens a reply stays in, because the reply's first word is chosen there.
    """
    xs, rows, places = [], [], []
    order = {id(chat): i for i, chat in enumerate(chats)}
    for batch in batches(chats, TOKENS_A_BATCH, seed=0):
        residual = np.asarray(_resid_post(model, params, batch.ids))
        for i, chat in enumerate(batch.rows):
            kept = np.flatnonzero(np.array(chat.kinds) != CONTROL)
            xs.append(residual[i, kept])
            places.append(kept)
            rows.append(np.full(len(kept), order[id(chat)]))
    return Residuals(np.concatenate(xs), np.concatenate(rows), np.concatenate(places), chats)
