"""Top and bottom tokens of features against NumPy in float64; the demo pair's tokens."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from neuroscope_jax.config import load_preset
from neuroscope_jax.corpus import setup
from neuroscope_jax.errors import UserError
from neuroscope_jax.features import logits
from neuroscope_jax.features.logits import Extremes, spoken_ids, token_scores, top_tokens
from neuroscope_jax.models import weights
from neuroscope_jax.models.weights import load_weights
from neuroscope_jax.sae.formats import decoder_rows
from neuroscope_jax.tensor_file import StoredTensor, tensors

V, D = 1003, 24


@pytest.fixture(scope="module")
def pair() -> setup.Pair:
    return setup.find(load_preset("demo"))


@pytest.fixture
def table() -> np.ndarray:
    """With a mean far from zero, and larger where a control token would be."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((V, D)) + 3
    table[:9] *= 20
    return table.astype(np.float32)


@pytest.fixture
def spoken() -> np.ndarray:
    return np.arange(V) >= 9


def in_float64(directions: np.ndarray, table: np.ndarray, spoken: np.ndarray) -> np.ndarray:
    """Scores less the mean of the spoken ids; NaN at the others."""
    scores = directions.astype(np.float64) @ table.astype(np.float64).T
    scores[:, ~spoken] = np.nan
    return scores - np.nanmean(scores, axis=1, keepdims=True)


def assert_agrees(found: Extremes, expected: np.ndarray, k: int) -> None:
    order = np.argsort(expected, axis=1)  # NaN last
    spoken = int(np.isfinite(expected[0]).sum())
    top, bottom = order[:, :spoken][:, ::-1][:, :k], order[:, :k]
    np.testing.assert_array_equal(found.top_ids, top)
    np.testing.assert_array_equal(found.bottom_ids, bottom)
    np.testing.assert_allclose(found.top, np.take_along_axis(expected, top, 1), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found.bottom, np.take_along_axis(expected, bottom, 1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("tokens_at_once", [100, 500, 5000])
@pytest.mark.parametrize("features_at_once", [4, 512])
def test_top_and_bottom_are_numpys(
    table: np.ndarray, spoken: np.ndarray, tokens_at_once: int, features_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logits, "FEATURES_AT_ONCE", features_at_once)
    directions = np.random.default_rng(1).standard_normal((11, D)).astype(np.float32)
    blocks = np.split(table, range(tokens_at_once, V, tokens_at_once))
    found = top_tokens(directions, blocks, spoken, 10)
    assert_agrees(found, in_float64(directions, table, spoken), 10)


def test_bfloat16_embeddings_are_multiplied_in_float32(table: np.ndarray, spoken: np.ndarray) -> None:
    stored = table.astype(ml_dtypes.bfloat16)
    directions = np.random.default_rng(1).standard_normal((5, D)).astype(np.float32)
    assert_agrees(top_tokens(directions, [stored], spoken, 10), in_float64(directions, stored, spoken), 10)


def test_fewer_tokens_than_places_are_all_there(table: np.ndarray) -> None:
    spoken = np.isin(np.arange(V), [20, 30, 40])
    directions = np.ones((2, D), np.float32)
    found = top_tokens(directions, [table], spoken, 10)
    assert_agrees(found, in_float64(directions, table, spoken), 3)


def test_no_direction_no_token(table: np.ndarray, spoken: np.ndarray) -> None:
    assert top_tokens(np.zeros((0, D), np.float32), [table], spoken).top_ids.shape == (0, 10)


def test_the_embedding_is_gone_through_once_and_never_all_in_float32(
    table: np.ndarray, spoken: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logits, "FEATURES_AT_ONCE", 4)
    blocks = np.split(table, range(100, V, 100))
    taken: list[int] = []

    def one_at_a_time() -> Iterator[np.ndarray]:
        for i, block in enumerate(blocks):
            taken.append(i)
            yield block

    directions = np.ones((12, D), np.float32)
    top_tokens(directions, one_at_a_time(), spoken)
    assert taken == list(range(len(blocks)))
    state = Extremes.empty(4, 10)
    program = logits._with_tokens.lower(state, directions[:4], blocks[0], spoken[:100], 0).as_text()
    assert f"tensor<4x{len(blocks[0])}xf32>" in program
    assert f"x{V}x" not in program


def test_control_unused_and_absent_ids_are_not_spoken(pair: setup.Pair) -> None:
    tokenizer = pair.tokenizer
    spoken = spoken_ids(tokenizer, tokenizer.vocabulary_size + 5)
    silent = {tokenizer.token_text(int(i)) for i in np.flatnonzero(~spoken[: tokenizer.vocabulary_size])}
    assert {"<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>", "<unused0>", "<unused50>"} <= silent
    assert not spoken[tokenizer.vocabulary_size :].any()
    for word in (" the", ".", "?", "\n", " thanks"):
        assert spoken[tokenizer.single_token(word)]


def test_features_of_the_demo_pair(pair: setup.Pair) -> None:
    features = [745, 3, 622, 573]
    found = dict(token_scores(pair.folder, pair.model, pair.sae_path, pair.tokenizer, features))
    assert list(found) == features
    params = load_weights(pair.folder, pair.model, np.float32)
    norm, table = (np.asarray(params[name]["weight"], np.float64) for name in ("norm", "embed_tokens"))
    directions = decoder_rows(pair.sae_path, features).astype(np.float64) * (1 + norm)
    expected = in_float64(directions, table, spoken_ids(pair.tokenizer, len(table)))
    for scores, feature in zip(expected, features, strict=True):
        ids = np.argsort(scores)
        ids = ids[np.isfinite(scores[ids])]
        for tokens, wanted in ((found[feature].top, ids[::-1][:10]), (found[feature].bottom, ids[:10])):
            assert [token.token_id for token in tokens] == wanted.tolist()
            assert [token.text for token in tokens] == [pair.tokenizer.token_text(i) for i in wanted.tolist()]
            np.testing.assert_allclose([token.score for token in tokens], scores[wanted], rtol=1e-4, atol=1e-5)
    # Features that fire before a question mark, a 1 and the word is.
    assert [found[feature].top[0].text for feature in (745, 622, 573)] == ["?", "1", " is"]


def test_only_the_final_norm_and_the_embedding_are_read(pair: setup.Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[StoredTensor] = []
    read = weights._read
    monkeypatch.setattr(weights, "_read", lambda stored, *more: found.append(stored) or read(stored, *more))
    assert next(token_scores(pair.folder, pair.model, pair.sae_path, pair.tokenizer, [3]))[0] == 3
    assert found == [tensors(pair.folder / "model.safetensors")["model.norm.weight"]]  # the embedding comes in blocks


def test_an_embedding_that_is_not_finite_is_refused(pair: setup.Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = weights.Table.blocks

    def damaged(table: weights.Table, size: int) -> Iterator[np.ndarray]:
        for block in blocks(table, size):
            block[2000, 3] = np.nan
            yield block

    monkeypatch.setattr(weights.Table, "blocks", damaged)
    with pytest.raises(UserError, match=r"model\.embed_tokens\.weight is not finite"):
        next(token_scores(pair.folder, pair.model, pair.sae_path, pair.tokenizer, [3]))
