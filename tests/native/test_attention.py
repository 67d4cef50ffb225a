"""The native attention against loops over float64 numbers, and XLA's form of the same."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.models.attention import View, attend
from neuroscope_jax.models.cache import held
from neuroscope_jax.native import attention, kernels
from neuroscope_jax.native.attention import MOST_QUERIES

pytestmark = pytest.mark.usefixtures("native")

SLOTS = 300
SCALE = 0.3


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    return jnp.asarray(rng.standard_normal(shape), dtype)


def operands(
    queries: int, heads: int, kv_heads: int, size: int, dtype: jnp.dtype
) -> tuple[jax.Array, jax.Array, jax.Array]:
    rng = np.random.default_rng(queries * 1009 + size)
    cache = (SLOTS, kv_heads, size)
    return random(rng, (queries, heads, size), dtype), random(rng, cache, dtype), random(rng, cache, dtype)


def attend_cached(q: jax.Array, k: jax.Array, v: jax.Array, *rest) -> jax.Array:
    """Without the axis of a batch of one."""
    return attention.attend_cached(q[None], k[None], v[None], *rest)[0]


def oracle(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, start: int, cap: float | None, window: int | None
) -> np.ndarray:
    out = np.zeros(q.shape)
    for t, n in np.ndindex(q.shape[:2]):
        i, head = start + t, n // (q.shape[1] // k.shape[1])
        seen = slice(0 if window is None else max(0, i - window + 1), i + 1)
        scores = k[seen, head] @ q[t, n] * SCALE
        scores = scores if cap is None else cap * np.tanh(scores / cap)
        weights = np.exp(scores - scores.max())
        out[t, n] = weights / weights.sum() @ v[seen, head]
    return out


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("queries", "heads", "kv_heads", "size"),
    [(1, 8, 4, 256), (1, 4, 4, 12), (1, 3, 1, 1), (1, 6, 2, 33), (2, 2, 1, 8), (3, 4, 2, 20), (8, 16, 8, 100)],
)
@pytest.mark.parametrize(
    ("start", "cap", "window"),
    [(0, None, None), (5, 2.0, None), (63, None, 7), (64, 0.5, 64), (65, 3.0, 1), (200, None, None), (292, 1.0, 130)],
)
def test_equals_numpy(
    queries: int,
    heads: int,
    kv_heads: int,
    size: int,
    start: int,
    cap: float | None,
    window: int | None,
    dtype: jnp.dtype,
) -> None:
    q, k, v = operands(queries, heads, kv_heads, size, dtype)
    found = attend_cached(q, k, v, jnp.int32(start), SCALE, cap, window)
    assert found.dtype == jnp.float32
    exact = oracle(*(np.asarray(x, np.float64) for x in (q, k, v)), start, cap, window)
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("window", [None, 3, 90])
def test_the_form_of_several_queries_agrees(window: int | None, dtype: jnp.dtype) -> None:
    """XLA's, which prefill uses, over the same slots."""
    queries = MOST_QUERIES + 1
    q, k, v = operands(queries, 8, 2, 16, dtype)
    positions = jnp.arange(100, 100 + queries)[None]
    view = View.of_cache(positions, SLOTS, window)
    program = jax.jit(attend, static_argnames=("scale", "cap"))
    plain = program(q[None], k[None], v[None], view.replace(start=None, window=None), SCALE, 5.0)[0]
    native = jnp.concatenate(
        [attend_cached(q[t : t + 1], k, v, positions[0, t], SCALE, 5.0, window) for t in range(queries)]
    )
    bound = 2e-6 if dtype == jnp.float32 else 2e-2
    np.testing.assert_allclose(plain.astype(jnp.float32), native, atol=bound)


@pytest.mark.parametrize("window", [None, 50])
def test_a_query_does_not_depend_on_its_neighbours_or_the_length_of_the_cache(window: int | None) -> None:
    q, k, v = operands(8, 4, 2, 40, jnp.float32)
    together = attend_cached(q, k, v, jnp.int32(120), SCALE, 4.0, window)
    for t in range(8):
        alone = attend_cached(q[t : t + 1], k[: 121 + t], v[: 121 + t], jnp.int32(120 + t), SCALE, 4.0, window)
        np.testing.assert_array_equal(together[t], alone[0])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("start", [0, 60, 63, 64, 120, 126, 190, 292])
def test_slots_that_are_used_over_and_over(start: int, dtype: jnp.dtype) -> None:
    """The same as where every position has a slot of its own."""
    queries, window, size = 3, 50, 128
    q, k, v = operands(queries, 4, 2, 20, dtype)
    expected = attend_cached(q, k, v, jnp.int32(start), SCALE, 2.0, window)
    positions = held(jnp.int32(start + queries - 1), size)
    found = attend_cached(q, k[positions], v[positions], jnp.int32(start), SCALE, 2.0, window)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("window", "size"), [(None, 128), (50, 100), (127, 128)])
def test_slots_that_would_be_overwritten_are_refused(window: int | None, size: int) -> None:
    q, k, v = operands(2, 2, 1, 8, jnp.float32)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="no slot"):
        attend_cached(q, k[:size], v[:size], jnp.int32(size), SCALE, None, window).block_until_ready()


def test_slots_that_may_not_be_seen_are_not_read() -> None:
    q, k, v = operands(2, 4, 2, 16, jnp.float32)
    hidden = (jnp.arange(SLOTS) <= 150 - 20) | (jnp.arange(SLOTS) > 151)
    expected = attend_cached(q, k, v, jnp.int32(150), SCALE, None, 20)
    holes = (jnp.where(hidden[:, None, None], jnp.nan, x) for x in (k, v))
    read_out = attend_cached(q[:1], *holes, jnp.int32(151), SCALE, None, 20)
    assert not jnp.isnan(expected).any()
    assert not jnp.isnan(read_out).any()


@pytest.mark.parametrize("where", ["query", "key", "value"])
def test_what_is_not_finite_is_not_hidden(where: str) -> None:
    given = dict(zip(("query", "key", "value"), operands(1, 2, 1, 24, jnp.float32), strict=True))
    given[where] = given[where].at[0, 0, 3].set(jnp.nan)
    assert jnp.isnan(attend_cached(*given.values(), jnp.int32(80), SCALE, 5.0, None)).any()


def test_a_position_past_the_cache_is_refused() -> None:
    q, k, v = operands(2, 2, 1, 8, jnp.float32)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="no slot"):
        attend_cached(q, k, v, jnp.int32(SLOTS - 1), SCALE, None, None).block_until_ready()


def test_few_queries_of_a_cache_use_it() -> None:
    def lowered(queries: int) -> str:
        q, k, v = operands(queries, 2, 1, 8, jnp.float32)
        view = View.of_cache(jnp.arange(queries)[None], SLOTS, None)
        return jax.jit(lambda: attend(q[None], k[None], v[None], view, SCALE, None)).lower().as_text()

    assert kernels.ATTENTION in lowered(1)
    assert kernels.ATTENTION in lowered(MOST_QUERIES)
    assert kernels.ATTENTION not in lowered(MOST_QUERIES + 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can forbid a process more memory")
def test_memory_that_runs_out_is_an_error_and_not_the_end() -> None:
    root = Path(__file__).parents[2]
    run = [sys.executable, "-m", "tests.native.out_of_memory"]
    done = subprocess.run(run, cwd=root, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["RESOURCE_EXHAUSTED: Out of memory in a native kernel", "1.0"], done.stderr
