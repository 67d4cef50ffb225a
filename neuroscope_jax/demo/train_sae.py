"""Train the demo's JumpReLU SAE: BatchTopK first, then one threshold a feature by straight-through gradients.

Sources: BatchTopK (arXiv 2412.06410), the auxiliary loss for dead features (2406.04093), JumpReLU and its
pseudo-derivatives (2407.14435). Training divides residuals by one scalar of the data set; `released` folds it and b_dec
into the weights, as Gemma Scope does (2408.05147, App. A), so that encoding takes the raw residual.
"""

import logging
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

logger = logging.getLogger(__name__)

WIDTH = 2048
TARGET_L0 = 16
ROWS = 2048  # tokens a batch
PEAK_RATE = 1.5e-3
START = 4  # times the target is how many features are active at first
SPARSE_AFTER = 0.25  # of BatchTopK training: until then the number of active features falls to the target
DEAD_AFTER = 150  # batches without firing
AUX_ROWS, AUX_K, AUX_WEIGHT = 256, 32, 1 / 16
BANDWIDTH = 0.03  # of the pseudo-derivatives, in units of the normalised residual
L0_WEIGHT = 0.5
OPTIMIZER = optax.scale_by_adam(b1=0.9, b2=0.999)
Weights = dict[str, Array]


@jax.custom_vjp
def jump_relu(pre: Float[Array, "B E"], threshold: Float[Array, " E"]) -> Float[Array, "B E"]:
    """`pre` where it is above the threshold, else zero; the threshold gets a pseudo-derivative."""
    return pre * (pre > threshold)


@jax.custom_vjp
def is_active(pre: Float[Array, "B E"], threshold: Float[Array, " E"]) -> Float[Array, "B E"]:
    """One where `pre` is above the threshold; differentiable in the threshold only."""
    return (pre > threshold).astype(pre.dtype)


def _near(pre: Array, threshold: Array) -> Array:
    return (jnp.abs(pre - threshold) < BANDWIDTH / 2) / BANDWIDTH


def _jump_relu_back(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    pre, threshold = saved
    return g * (pre > threshold), -threshold * jnp.sum(g * _near(pre, threshold), axis=0)


def _is_active_back(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    pre, threshold = saved
    return jnp.zeros_like(pre), -jnp.sum(g * _near(pre, threshold), axis=0)


jump_relu.defvjp(lambda pre, threshold: (jump_relu(pre, threshold), (pre, threshold)), _jump_relu_back)
is_active.defvjp(lambda pre, threshold: (is_active(pre, threshold), (pre, threshold)), _is_active_back)


def fresh(x: Float[np.ndarray, "N D"], seed: int = 0) -> Weights:
    """Decoder rows point at data; the encoder is its transpose, scaled to fit the data best at the first threshold."""
    rng = np.random.default_rng(seed)
    sample = x[rng.integers(0, len(x), ROWS)]
    mean = x[: 1 << 16].mean(0)
    rows = x[rng.integers(0, len(x), WIDTH)] - mean + 0.3 * rng.standard_normal((WIDTH, x.shape[1])) / x.shape[1] ** 0.5
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    pre = (sample - mean) @ rows.T
    threshold = np.quantile(pre, 1 - START * TARGET_L0 / WIDTH)
    guess = pre * (pre > threshold) @ rows
    fit = float(np.sum(guess * (sample - mean)) / np.sum(guess**2))
    return {
        "W_enc": jnp.asarray(fit * rows.T),
        "W_dec": jnp.asarray(rows),
        "b_enc": jnp.zeros(WIDTH),
        "b_dec": jnp.asarray(mean),
        "log_threshold": jnp.full(WIDTH, np.log(fit * threshold), jnp.float32),
    }


def _pre(w: Weights, x: Float[Array, "B D"]) -> Float[Array, "B E"]:
    return (x - w["b_dec"]) @ w["W_enc"] + w["b_enc"]


def _revive(w: Weights, pre: Array, error: Array, dead: Bool[Array, " E"]) -> Float[Array, ""]:
    """How badly the best dead features explain what the live ones leave over."""
    values, chosen = jax.lax.top_k(jnp.where(dead, pre[:AUX_ROWS], -jnp.inf), AUX_K)
    values = jnp.where(jnp.isfinite(values), jax.nn.relu(values), 0.0)
    acts = jnp.zeros_like(pre[:AUX_ROWS]).at[jnp.arange(AUX_ROWS)[:, None], chosen].set(values)
    error = jax.lax.stop_gradient(error[:AUX_ROWS])
    return jnp.mean(jnp.sum((error - acts @ w["W_dec"]) ** 2, axis=-1)) / jnp.mean(jnp.sum(error**2, axis=-1))


def _loss(w: Weights, x: Array, dead: Array, target: Array, tune: bool) -> tuple[Array, dict[str, Array]]:
    pre, threshold = _pre(w, x), jnp.exp(w["log_threshold"])
    acts = jump_relu(pre, threshold) if tune else pre * (pre > jax.lax.stop_gradient(threshold))
    error = x - acts @ w["W_dec"] - w["b_dec"]
    squared = jnp.mean(jnp.sum(error**2, axis=-1))
    if tune:
        l0 = jnp.mean(jnp.sum(is_active(pre, threshold), axis=-1))
        loss = squared + L0_WEIGHT * (l0 / target - 1) ** 2
    else:
        l0 = jnp.mean(jnp.sum(acts > 0, axis=-1))
        loss = squared + AUX_WEIGHT * squared * jnp.where(dead.any(), _revive(w, pre, error, dead), 0.0)
    return loss, {"squared": squared, "l0": l0, "fired": jnp.any(acts > 0, axis=0)}


@partial(jax.jit, static_argnames="tune", donate_argnums=0)
def step(state: dict[str, Any], x: Array, rate: Array, target: Array, tune: bool) -> tuple[dict[str, Any], Array]:
    """One update. BatchTopK keeps the batch's `target` largest activations a token: here one shared threshold follows
    the target instead, which spares the sort. Returns the state and (squared error, L0, dead features).
    """
    w, dead = state["weights"], state["idle"] > DEAD_AFTER
    gradient, seen = jax.grad(_loss, has_aux=True)(w, x, dead, target, tune)
    updates, optimizer = OPTIMIZER.update(gradient, state["optimizer"])
    new = jax.tree.map(lambda p, u: p - rate * u, w, updates)
    new["W_dec"] /= jnp.linalg.norm(new["W_dec"], axis=1, keepdims=True)
    if not tune:
        new["log_threshold"] = w["log_threshold"] + 0.05 * jnp.clip(seen["l0"] / target - 1, -1, 1)
    idle = jnp.where(seen["fired"], 0, state["idle"] + 1)
    figures = jnp.stack([seen["squared"], seen["l0"], jnp.sum(dead)])
    return {"weights": new, "optimizer": optimizer, "idle": idle}, figures


def train(x: Float[np.ndarray, "N D"], steps: int, tuning_steps: int) -> dict[str, np.ndarray]:
    """Train on raw residuals `x`; the arrays of a Gemma Scope params.npz."""
    scale = float(np.sqrt(np.mean(np.sum(np.square(x), axis=1, dtype=np.float64))))
    x = x / np.float32(scale)
    weights, rng, started = fresh(x), np.random.default_rng(1), time.monotonic()
    state = {"weights": weights, "optimizer": OPTIMIZER.init(weights), "idle": jnp.zeros(WIDTH, jnp.int32)}
    for i in range(steps + tuning_steps):
        done, tune = i / (steps + tuning_steps), i >= steps
        target = TARGET_L0 * (1 + (START - 1) * max(0.0, 1 - i / (SPARSE_AFTER * steps)))
        rate = PEAK_RATE * min(1.0, i / 100, (1 - done) / 0.4 + 0.01)
        batch = x[rng.integers(0, len(x), ROWS)]
        state, figures = step(state, batch, jnp.float32(rate), jnp.float32(target), tune)
        if i % 100 == 99:
            squared, l0, dead = (float(v) for v in figures)
            seconds = time.monotonic() - started
            logger.info("SAE step %d: squared error %.4f, L0 %.1f, dead %d, %.0f s", i + 1, squared, l0, dead, seconds)
    return released(state["weights"], scale)


def released(w: Weights, scale: float) -> dict[str, np.ndarray]:
    """Weights for raw residuals: `pre = x @ W_enc + b_enc`, `x_hat = acts @ W_dec + b_dec`."""
    exact = {name: np.asarray(array, np.float64) for name, array in w.items()}
    arrays = {
        "W_enc": exact["W_enc"],
        "W_dec": exact["W_dec"],
        "b_enc": scale * (exact["b_enc"] - exact["b_dec"] @ exact["W_enc"]),
        "b_dec": scale * exact["b_dec"],
        "threshold": scale * np.exp(exact["log_threshold"]),
    }
    return {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
