"""Drawing tokens, against distributions worked out in NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuroscope_jax.engine.requests import SamplingOptions
from neuroscope_jax.engine.sampling import CANDIDATES, Sampling, choose

DRAWS = 20_000


def draws(logits, options, counts=None, count=DRAWS):
    """Many tokens, each at a position of its own."""
    counts = jnp.zeros(logits.size, jnp.int32) if counts is None else jnp.asarray(counts)
    return np.asarray(_draws(jnp.asarray(logits), counts, Sampling.of(options, []), count))


@functools.partial(jax.jit, static_argnames="count")
def _draws(logits, counts, sampling, count):
    return jax.lax.map(lambda position: choose(logits, counts, sampling, position).id, jnp.arange(count))


def expected(logits, temperature=1.0, top_k=0, top_p=1.0):
    """The distribution by its definition: sort, cut, renormalise, in float64."""
    logits = logits.astype(np.float64) / temperature
    order = np.argsort(-logits, kind="stable")[: top_k or None]
    probability = np.exp(logits[order] - logits[order].max())
    probability /= probability.sum()
    kept = np.cumsum(probability) - probability < top_p
    kept[0] = True
    full = np.zeros(logits.size)
    full[order[kept]] = probability[kept] / probability[kept].sum()
    return full


def check(found, wanted):
    frequency = np.bincount(found, minlength=wanted.size) / found.size
    assert not np.any(frequency[wanted == 0]), "drew a token that the cut excludes"
    deviation = np.abs(frequency - wanted) / np.sqrt(np.maximum(wanted * (1 - wanted), 1e-9) / found.size)
    assert deviation[wanted > 1e-3].max(initial=0) < 5
    assert np.abs(frequency - wanted).sum() / 2 < 0.03 + np.sqrt((wanted > 0).sum() / found.size) / 2


@pytest.mark.parametrize(
    "cut",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0},
        {"top_k": 5},
        {"top_p": 0.8},
        {"top_k": 20, "top_p": 0.5},
        {"top_p": 0.0},
    ],
    ids=str,
)
def test_distribution(cut):
    logits = np.random.default_rng(0).standard_normal(50).astype(np.float32) * 2
    check(draws(logits, SamplingOptions(seed=1, **cut)), expected(logits, **cut))


@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_a_cut_beyond_the_candidates_is_exact_too(top_p):
    """A flat distribution over more tokens than candidates: the nucleus does not fit in them."""
    logits = np.random.default_rng(0).standard_normal(3 * CANDIDATES + 7).astype(np.float32) / 2
    wanted = expected(logits, top_p=top_p)
    assert (wanted > 0).sum() > CANDIDATES
    found = draws(logits, SamplingOptions(seed=1, top_p=top_p))
    assert np.all(wanted[found] > 0)
    by_rank = np.argsort(-logits)  # forty bins of neighbours in rank, each likely enough to be counted
    bins = np.empty(logits.size, int)
    bins[by_rank] = np.arange(logits.size) * 40 // logits.size
    check(bins[found], np.bincount(bins, wanted))


def test_temperature_zero_is_argmax():
    logits = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    for temperature in (0, 1e-40, 1e-7, 1e-3):
        assert set(draws(logits, SamplingOptions(temperature=temperature), count=50)) == {np.argmax(logits)}


def test_penalties_follow_openai():
    """logit - presence * (seen at all) - frequency * (times seen)."""
    logits = np.array([5.0, 4.4, 3.5, 1.0], np.float32)
    cases = [((0.0, 0.0), 0), ((2.0, 0.0), 2), ((0.0, 0.5), 1), ((0.0, 2.0), 2), ((-2.0, 0.0), 0)]
    for (presence, frequency), winner in cases:
        options = SamplingOptions(temperature=0, presence_penalty=presence, frequency_penalty=frequency)
        penalised = logits - presence * np.array([1, 1, 0, 0]) - frequency * np.array([3, 1, 0, 0])
        assert np.argmax(penalised) == winner
        assert draws(logits, options, counts=[3, 1, 0, 0], count=1)[0] == winner


def test_logit_bias_shifts_the_distribution():
    logits = np.random.default_rng(0).standard_normal(50).astype(np.float32) * 2
    bias = {3: 2.0, 49: -1.5, 0: -100.0}
    shifted = logits.copy()
    for token_id, value in bias.items():
        shifted[token_id] += value
    check(draws(logits, SamplingOptions(seed=1, logit_bias=tuple(bias.items()))), expected(shifted))


def test_logit_bias_of_a_hundred_bans_and_forces():
    logits = np.random.default_rng(0).uniform(-30, 30, 50).astype(np.float32)  # as wide as Gemma's cap lets them be
    best, worst = int(np.argmax(logits)), int(np.argmin(logits))
    for options, wanted in ((((best, -100.0),), np.argsort(logits)[-2]), (((worst, 100.0),), worst)):
        assert set(draws(logits, SamplingOptions(temperature=0, logit_bias=options), count=5)) == {wanted}
        assert best not in draws(logits, SamplingOptions(seed=1, temperature=2, logit_bias=options), count=500)


def test_seeds_that_differ_in_their_high_bits_only():
    seeds = [7, 7 + 2**32, 7 - 2**40, -7, -1, 2**63 - 1, -(2**63)]
    found = {int(Sampling.of(SamplingOptions(seed=seed), []).seed) for seed in seeds}
    assert len(found) == len(seeds)
    assert int(Sampling.of(SamplingOptions(seed=7), []).seed) == 7


def test_logprobs_ignore_temperature_and_penalties():
    logits = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    options = SamplingOptions(temperature=0.3, presence_penalty=2, seed=4)
    choice = choose(jnp.asarray(logits), jnp.ones(50, jnp.int32), Sampling.of(options, []), jnp.int32(3))
    wanted = np.log(expected(logits))
    assert float(choice.logprob) == pytest.approx(wanted[int(choice.id)], abs=1e-5)
    np.testing.assert_allclose(choice.top_logprobs, np.sort(wanted)[::-1][:20], rtol=1e-5)


def test_stop_ids_are_seen_on_the_device():
    logits = jnp.zeros(9).at[4].set(9.0)
    for stops, hit in (([4], True), ([1, 2, 4], True), ([3], False), ([], False)):
        sampling = Sampling.of(SamplingOptions(temperature=0), stops)
        assert bool(choose(logits, jnp.zeros(9, jnp.int32), sampling, jnp.int32(0)).stops) is hit


def test_limits_are_named():
    with pytest.raises(ValueError, match="top_k is 5000; expected 0 to 1024"):
        SamplingOptions(top_k=5000)
    with pytest.raises(ValueError, match="top_logprobs is 21; expected 0 to 20"):
        SamplingOptions(top_logprobs=21)
    with pytest.raises(ValueError, match="logit_bias has 1025 entries; at most 1024"):
        SamplingOptions(logit_bias=tuple((i, 1.0) for i in range(1025)))
    with pytest.raises(ValueError, match="9 stop ids; at most 8"):
        Sampling.of(SamplingOptions(), list(range(9)))
