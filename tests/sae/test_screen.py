"""A screened encoder gives the whole encoder's activations to the bit, and reads few of its rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.native import kernels
from neuroscope_jax.sae.autoencoder import SparseAutoencoder
from neuroscope_jax.sae.screen import Screen

D, E = 200, 3000


@pytest.fixture(autouse=True)
def native() -> None:
    if not kernels.available():
        pytest.skip("NO NATIVE KERNELS on this machine: encoders are never screened")


def random_sae(seed: int, threshold: float, input_norm: str = "none") -> SparseAutoencoder:
    rng = np.random.default_rng(seed)
    rows = jnp.asarray(rng.normal(0, rng.uniform(0.1, 2, (E, 1)), (E, D)), jnp.float32)
    b_enc, thresholds = rng.normal(0, 1, E), threshold * rng.uniform(0.5, 1.5, E)
    return SparseAutoencoder(rows, *(jnp.asarray(a, jnp.float32) for a in (b_enc, thresholds, 3.0)), input_norm)


encode = jax.jit(SparseAutoencoder.encode)


def both(sae: SparseAutoencoder, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = jnp.asarray(x, jnp.float32)
    return np.asarray(encode(sae.screened(), x)), np.asarray(encode(sae, x))


@pytest.mark.parametrize("input_norm", ["none", "rms", "scalar"])
@pytest.mark.parametrize("size", [1e-6, 1.0, 300.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_to_the_bit(seed: int, size: float, input_norm: str) -> None:
    read = {"none": size, "rms": 1.0, "scalar": size / 3}[input_norm]
    sae = random_sae(seed, 1.5 * read * D**0.5, input_norm)
    for x in np.random.default_rng(seed).normal(0, size, (20, D)):
        screened, whole = both(sae, x)
        np.testing.assert_array_equal(screened, whole)
        assert whole.any()


def test_thresholds_that_the_rounded_product_misses() -> None:
    """x lies where rounding takes most away, and each threshold just below the exact product."""
    sae = random_sae(5, 0.0)
    for j in range(0, E, 100):
        row = np.asarray(sae.encoder_rows[j], np.float64)
        x = 50 * (row - np.asarray(sae.encoder_rows[j].astype(jnp.bfloat16), np.float64))
        exact = both(sae.replace(threshold=jnp.full(E, -jnp.inf)), x)[1]
        at_the_edge = sae.replace(threshold=jnp.nextafter(jnp.asarray(exact), -jnp.inf))
        screened, whole = both(at_the_edge, x)
        np.testing.assert_array_equal(screened, whole)
        assert whole[j] == exact[j]
        blind = at_the_edge.replace(screen=Screen.of(sae.encoder_rows).replace(slack=jnp.zeros(E)))
        if blind.encode(jnp.asarray(x, jnp.float32))[j] != exact[j]:
            return  # without the slack it would have been missed, so the rows tried do try it
    pytest.fail("no row is missed even without slack: the test tests nothing")


def test_large_biases() -> None:
    sae = random_sae(2, 1.0)
    sae = sae.replace(b_enc=sae.b_enc * 1e6, threshold=jnp.abs(sae.b_enc) * 1e6)
    for x in np.random.default_rng(2).normal(0, 1, (20, D)):
        np.testing.assert_array_equal(*both(sae, x))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_residual_that_is_not_finite(value: float) -> None:
    x = np.ones(D)
    x[3] = value
    screened, whole = both(random_sae(0, 10.0), x)
    np.testing.assert_array_equal(screened, whole)


def test_few_rows_are_multiplied_exactly() -> None:
    sae = random_sae(1, 30.0).screened()
    for x in np.random.default_rng(1).normal(0, 1, (20, D)):
        x = jnp.asarray(x[None], jnp.float32)
        wanted = sae.screen.may_be_active(x, sae.b_enc, sae.threshold)
        active = int((sae.encode(x[0]) > 0).sum())
        assert active <= int(wanted.sum()) <= active + 0.02 * E


def test_several_residuals_at_once_are_not_screened() -> None:
    sae = random_sae(1, 5.0)
    x = jnp.asarray(np.random.default_rng(1).normal(0, 1, (3, D)), jnp.float32)
    np.testing.assert_array_equal(sae.screened().encode(x), sae.encode(x))


def test_where_there_is_no_kernel_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda *_: False)
    sae = random_sae(1, 5.0)
    assert sae.screened() is sae
