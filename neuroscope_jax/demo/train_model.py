"""Train the demo's Gemma 2: AdamW, warm-up and cosine, float32, one checkpoint every few pools of chats."""

import json
import logging
import math
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import serialization
from jaxtyping import Array, Float, Int
from tokenizers import Tokenizer

from neuroscope_jax.demo.batches import batches, pool
from neuroscope_jax.models.gemma2 import Gemma2, Gemma2Config
from neuroscope_jax.models.weights import Params

logger = logging.getLogger(__name__)

CONFIG = Gemma2Config(
    vocab_size=3072,
    hidden_size=192,
    intermediate_size=512,
    num_hidden_layers=6,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=48,
    query_pre_attn_scalar=48.0,
    sliding_window=64,
    max_position_embeddings=1024,
)
TOKENS_A_BATCH = 2048
PEAK_RATE, WARM_UP = 2.5e-3, 0.03
TRAINING_SEED = 1_000
OPTIMIZER = optax.chain(
    optax.clip_by_global_norm(1.0), optax.scale_by_adam(b1=0.9, b2=0.98), optax.add_decayed_weights(0.05)
)


def rate(done: float) -> float:
    """Learning rate after the fraction `done` of the training."""
    if done < WARM_UP:
        return PEAK_RATE * (done / WARM_UP)
    return PEAK_RATE * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP))))


def loss_of(params: Params, ids: Int[Array, "B T"], weights: Float[Array, "B T"]) -> Float[Array, ""]:
    """Weighted mean cross-entropy of the next token, in nats."""
    model = Gemma2(CONFIG)
    positions = jnp.broadcast_to(jnp.arange(ids.shape[1] - 1), (ids.shape[0], ids.shape[1] - 1))
    scores = model.apply({"params": params}, ids[:, :-1], positions, method="scores")
    losses = optax.softmax_cross_entropy_with_integer_labels(scores, ids[:, 1:])
    return jnp.sum(losses * weights[:, 1:]) / jnp.sum(weights[:, 1:])


@partial(jax.jit, donate_argnums=0)
def step(state: dict[str, Any], ids: Array, weights: Array, learning_rate: float) -> tuple[dict[str, Any], Array]:
    """One update of parameters and optimizer."""
    loss, gradient = jax.value_and_grad(loss_of)(state["params"], ids, weights)
    updates, optimizer = OPTIMIZER.update(gradient, state["optimizer"], state["params"])
    params = jax.tree.map(lambda p, u: p - learning_rate * u, state["params"], updates)
    return {"params": params, "optimizer": optimizer}, loss


def fresh() -> dict[str, Any]:
    """Seeded parameters and an empty optimizer."""
    ids = jnp.zeros((1, 4), jnp.int32)
    params = Gemma2(CONFIG).init(jax.random.key(0), ids, ids, method="scores")["params"]
    return {"params": params, "optimizer": OPTIMIZER.init(params)}


def train(tokenizer: Tokenizer, pools: int, work: Path) -> tuple[Params, dict[str, float]]:
    """Train over `pools` pools of chats, or go on from the checkpoint in `work`. Returns parameters and figures."""
    state, figures, first = _resume(work)
    for number in range(first, pools):
        started, losses, places = time.monotonic(), [], 0
        lots = list(batches(pool(tokenizer, TRAINING_SEED + number), TOKENS_A_BATCH, number))
        for i, batch in enumerate(lots):
            state, loss = step(state, batch.ids, batch.weights, rate((number + i / len(lots)) / pools))
            losses.append(loss)
            places += sum(len(row.ids) for row in batch.rows)
        figures["loss"] = float(jnp.mean(jnp.stack(losses)))  # waits for the device
        figures["tokens"] += places
        figures["seconds"] += time.monotonic() - started
        logger.info("pool %d of %d: loss %.3f, %.0f tokens in %.0f s", number + 1, pools, *_report(figures))
        _keep(work, state, figures, number + 1)
    return state["params"], figures


def _report(figures: dict[str, float]) -> tuple[float, float, float]:
    return figures["loss"], figures["tokens"], figures["seconds"]


def _keep(work: Path, state: dict[str, Any], figures: dict[str, float], pools_done: int) -> None:
    new = work / "model.new"
    new.write_bytes(serialization.to_bytes(state))
    (work / "model.json").write_text(json.dumps({**figures, "pools": pools_done}))
    new.replace(work / "model.checkpoint")


def _resume(work: Path) -> tuple[dict[str, Any], dict[str, float], int]:
    state = fresh()
    if not (work / "model.checkpoint").exists():
        return state, {"tokens": 0.0, "seconds": 0.0, "loss": math.nan}, 0
    figures = json.loads((work / "model.json").read_text())
    state = serialization.from_bytes(state, (work / "model.checkpoint").read_bytes())
    return state, figures, int(figures.pop("pools"))
