"""The compiled pass on the demo pair: what is in it, and its statistics against NumPy over stored activations."""

import contextlib
import dataclasses
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.config import load_preset
from neuroscope_jax.corpus import run as run_module
from neuroscope_jax.corpus import setup
from neuroscope_jax.corpus.checkpoint import Checkpoints
from neuroscope_jax.corpus.collected import Collected
from neuroscope_jax.corpus.run import Pass, run
from neuroscope_jax.corpus.samples import STRIDE, Texts, choose, rows
from neuroscope_jax.corpus.state import Batch
from neuroscope_jax.corpus.step import corpus_step, empty_states, local_mesh, residual_after
from neuroscope_jax.corpus.structure import Structure
from neuroscope_jax.demo.text import chats, render
from neuroscope_jax.models.weights import load_weights
from neuroscope_jax.native import kernels

SEED, SAMPLES = 5, 60


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    return local_mesh()


@pytest.fixture(scope="module")
def pair() -> setup.Pair:
    return setup.find(load_preset("demo"))


@pytest.fixture(scope="module")
def work(pair: setup.Pair, mesh: jax.sharding.Mesh) -> Pass:
    """Chats of the demo's kind, some of them joined to documents of several samples."""
    stream = chats(4242)
    texts = ["".join(render(next(stream)) for _ in range(1 + 8 * (i % 5 == 0))) for i in range(40)]
    ids = pair.tokenizer.encode_documents(texts)
    begins = np.cumsum([0, *map(len, ids)])
    part, params, sae = pair.load(mesh)
    tokens = Texts(np.concatenate(ids).astype(np.int32), begins)
    return Pass(part, params, sae, tokens, choose(begins, SAMPLES, SEED), Structure.of(pair.tokenizer), SEED)


@pytest.fixture(scope="module")
def found(work: Pass, mesh: jax.sharding.Mesh, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    with contextlib.closing(Checkpoints(tmp_path_factory.mktemp("pass"))) as checkpoints:
        return run(work, np.arange(len(work.samples)), mesh, checkpoints, every=1e9)


@pytest.fixture(scope="module")
def stored(work: Pass) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Activations of every token that counts [N, E], and its document, offset and sample."""
    batch = rows(work.texts, work.samples, work.structure, np.arange(len(work.samples)))
    # Weights that are constants of a program are multiplied in another order than those it is given.
    encode = jax.jit(lambda params, sae, ids: sae.encode(residual_after(work.model, params, ids)))
    lots = np.split(batch.ids, len(batch.ids) // 10)
    activations = np.concatenate([encode(work.params, work.sae, jnp.asarray(ids)) for ids in lots])
    row, place = np.nonzero(batch.counted)
    return activations[row, place], batch.document[row], batch.offset[row] + place - 1, row


def test_the_program_holds_no_later_block_and_no_unembedding(work: Pass, mesh: jax.sharding.Mesh) -> None:
    batch = rows(work.texts, work.samples, work.structure, np.arange(run_module.rows_a_device(work.sae)))
    arguments = work.params, work.sae, empty_states(mesh, work.sae.d_sae), Batch(**dataclasses.asdict(batch))
    text = corpus_step.lower(work.model, *arguments, SEED, mesh).as_text(debug_info=True)
    assert "layers_3" in text
    assert "layers_4" not in text
    assert "/unembed" not in text
    vocabulary, width = work.params["embed_tokens"]["weight"].shape
    products = [line for line in text.splitlines() if "dot_general" in line or kernels.PRODUCT in line]
    assert products
    assert not [line for line in products if f"{vocabulary}x{width}" in line]
    assert set(work.params) == {"embed_tokens", "layers_0", "layers_1", "layers_2", "layers_3"}


def test_the_residual_is_the_whole_models(work: Pass, pair: setup.Pair) -> None:
    whole = load_weights(pair.folder, pair.model, jnp.float32)
    ids = jnp.asarray(rows(work.texts, work.samples, work.structure, np.arange(3)).ids)
    positions = jnp.broadcast_to(jnp.arange(ids.shape[1]), ids.shape)
    _, sown = jax.jit(functools.partial(pair.model.apply, mutable=["intermediates"]))({"params": whole}, ids, positions)
    expected = sown["intermediates"]["layers_3"]["resid_post"][0]
    found = jax.jit(functools.partial(residual_after, work.model))(work.params, ids)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_statistics_equal_a_numpy_pass(found: Collected, stored: tuple[np.ndarray, ...]) -> None:
    activations = stored[0].astype(np.float64)
    fires = activations > 0
    count = fires.sum(0)
    assert found.tokens == len(activations) > 2000
    np.testing.assert_array_equal(found.count, count)
    some = count > 0
    mean = activations.sum(0)[some] / count[some]
    np.testing.assert_allclose(found.mean[some], mean, rtol=1e-5)
    m2 = np.where(fires, (activations - activations.sum(0) / np.maximum(count, 1)) ** 2, 0).sum(0)
    np.testing.assert_allclose(found.m2[some], m2[some], rtol=1e-5, atol=1e-6 * m2.max())
    np.testing.assert_allclose(found.stats().max_activation, activations.max(0), rtol=1e-6)
    # Every firing is of one feature and one token: rates over all features sum to L0.
    assert found.stats().firing_rate.sum() == pytest.approx(fires.sum(1).mean())
    np.testing.assert_array_equal(found.histogram.sum(1), count)


def test_the_top_examples_are_the_strongest_tokens_of_different_samples(
    found: Collected, stored: tuple[np.ndarray, ...]
) -> None:
    activations, document, offset, row = stored
    for feature in np.flatnonzero(found.count)[::7]:
        best: dict[int, tuple[float, int, int]] = {}
        for i in np.flatnonzero(activations[:, feature]):
            entry = -float(activations[i, feature]), int(document[i]), int(offset[i])
            best[int(row[i])] = min(best.get(int(row[i]), entry), entry)
        expected = sorted(best.values())[:20]
        columns = -found.top.activation[feature], found.top.document[feature], found.top.offset[feature]
        assert list(zip(*(c[: len(expected)].tolist() for c in columns), strict=True)) == expected


def test_the_pool_says_which_features_are_silent_in_a_window(found: Collected, work: Pass, stored: tuple) -> None:
    activations, document, offset, _ = stored
    samples = work.samples
    for i in np.flatnonzero(samples.slot >= 0)[::5]:
        first = samples.offset[i] + samples.start[i] - 1
        last = min(first + 25, samples.offset[i] + STRIDE)
        inside = (document == samples.document[i]) & (offset >= first) & (offset < last)
        bits = (found.windows[samples.slot[i]][:, None] >> np.arange(32, dtype=np.uint32)) & 1
        np.testing.assert_array_equal(bits.reshape(-1)[: work.sae.d_sae], (activations[inside] > 0).any(0))


def test_no_example_is_at_a_token_that_does_not_count(found: Collected, stored: tuple[np.ndarray, ...]) -> None:
    counted = set(zip(stored[1].tolist(), stored[2].tolist(), strict=True))
    for entries in (found.top, found.drawn):
        kept = entries.activation > 0
        assert set(zip(entries.document[kept].tolist(), entries.offset[kept].tolist(), strict=True)) <= counted


def test_a_pass_goes_on_from_a_saved_state(
    work: Pass, found: Collected, mesh: jax.sharding.Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception):
        pass

    def dies(self: Checkpoints, batches: int, states: object) -> None:
        original(self, batches, states)
        if batches == 2:
            raise Stopped

    original = Checkpoints.save
    with monkeypatch.context() as patch, contextlib.closing(Checkpoints(tmp_path)) as checkpoints:
        patch.setattr(Checkpoints, "save", dies)
        with pytest.raises(Stopped):
            run(work, np.arange(len(work.samples)), mesh, checkpoints, every=0)
    with contextlib.closing(Checkpoints(tmp_path)) as checkpoints:
        again = run(work, np.arange(len(work.samples)), mesh, checkpoints, every=1e9)
    jax.tree.map(np.testing.assert_array_equal, dataclasses.asdict(again), dataclasses.asdict(found))


def test_a_residual_that_is_not_finite_ends_the_pass(work: Pass, mesh: jax.sharding.Mesh, tmp_path: Path) -> None:
    params = jax.tree.map(lambda x: x, work.params)
    params["layers_2"]["mlp"]["up_proj"]["weight"] = params["layers_2"]["mlp"]["up_proj"]["weight"].at[0, 0].set(np.nan)
    damaged = dataclasses.replace(work, params=params)
    checkpoints = Checkpoints(tmp_path)
    with contextlib.closing(checkpoints), pytest.raises(FloatingPointError, match="not finite"):
        run(damaged, np.arange(len(work.samples)), mesh, checkpoints, every=0)
    assert not [path for path in tmp_path.iterdir() if path.name.isdigit()]
