"""The bundled pair: what its README claims, checked on text made here."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroscope_jax.demo.held_out import accuracy, is_right
from neuroscope_jax.demo.measure import measure
from neuroscope_jax.demo.residuals import LAYER, Residuals
from neuroscope_jax.demo.train_sae import WIDTH

pytestmark = pytest.mark.slow


def test_at_most_sixteen_megabytes(pair: Path) -> None:
    assert sum(file.stat().st_size for file in pair.rglob("*") if file.is_file()) <= 16e6


def test_four_of_five_held_out_questions_are_answered_rightly(demo: Any) -> None:
    share, wrong = accuracy(demo.model, demo.params, demo.words)
    assert share >= 0.8, wrong


@pytest.mark.parametrize(
    ("answer", "accepted", "right"),
    [
        ("The capital of France is Paris.", ["Paris"], True),
        ("The capital of France is parisian.", ["Paris"], False),
        ("4 + 5 = 19.", ["9"], False),
        ("It says moo.", ["baa", "moo"], True),
    ],
)
def test_an_answer_is_right_when_it_holds_an_accepted_word(answer: str, accepted: list[str], right: bool) -> None:
    assert is_right(answer, accepted) is right


def test_sae_file_has_gemma_scopes_arrays(sae: dict[str, np.ndarray], sae_file: Path) -> None:
    d_in = 192
    shapes = {
        "W_enc": (d_in, WIDTH),
        "W_dec": (WIDTH, d_in),
        "b_enc": (WIDTH,),
        "b_dec": (d_in,),
        "threshold": (WIDTH,),
    }
    assert {name: array.shape for name, array in sae.items()} == shapes
    assert {array.dtype for array in sae.values()} == {np.dtype(np.float32)}
    assert (sae["threshold"] > 0).all()
    np.testing.assert_allclose(np.linalg.norm(sae["W_dec"], axis=1), 1.0, rtol=1e-3)
    assert f"layer_{LAYER}/width_2k/" in sae_file.as_posix()


def test_sae_keeps_its_promises_on_held_out_text(sae: dict[str, np.ndarray], sae_file: Path, unseen: Residuals) -> None:
    found = measure(sae, unseen.x)
    (target,) = re.findall(r"average_l0_(\d+)", sae_file.as_posix())
    assert 8 <= int(target) <= 24
    assert found.l0 == pytest.approx(int(target), rel=0.2)
    assert found.fvu <= 0.20
    assert found.alive >= WIDTH // 2


def test_measure_on_a_case_done_by_hand() -> None:
    sae = {
        "W_enc": np.eye(2, dtype=np.float32),
        "W_dec": np.eye(2, dtype=np.float32),
        "b_enc": np.zeros(2, np.float32),
        "b_dec": np.zeros(2, np.float32),
        "threshold": np.array([1.0, 9.0], np.float32),
    }
    found = measure(
        sae, np.array([[2.0, 2.0], [1.0, 0.0]], np.float32)
    )  # active: the first 2.0 only; 1.0 is not above 1.0
    assert (found.tokens, found.l0, found.alive) == (2, 0.5, 1)
    assert found.fvu == pytest.approx((4 + 1) / (0.5 + 2.0))
