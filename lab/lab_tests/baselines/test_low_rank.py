"""The posterior of PRLR, compared with its optimality conditions and with logistic regression."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from lab_tests.baselines.toys import labels
from psilearn_lab.baselines import LR, PRLR
from psilearn_lab.baselines.low_rank import fit_soft_logistic, shrink_singular_values, solve_posterior


def objective(Q: np.ndarray, scores: np.ndarray, penalty: float) -> float:
    """KL(Q ‖ σ(scores)) + τ‖Q‖_*."""
    P, Q = expit(scores), np.clip(Q, 1e-15, 1 - 1e-15)
    divergence = Q * np.log(Q / P) + (1 - Q) * np.log((1 - Q) / (1 - P))
    return divergence.sum() + penalty * np.linalg.svd(Q, compute_uv=False).sum()


@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_the_posterior_minimises_the_penalised_divergence(seed: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=(8, 3))
    Q = solve_posterior(scores, penalty)
    lowest = objective(Q, scores, penalty)
    assert np.all((Q >= 0) & (Q <= 1))
    subgradient = (scores - logit(Q)) / penalty  # of ‖Q‖_*: norm at most 1, and ⟨subgradient, Q⟩ = ‖Q‖_*
    assert np.linalg.norm(subgradient, 2) < 1 + 1e-4
    assert np.sum(subgradient * Q) == pytest.approx(np.linalg.svd(Q, compute_uv=False).sum(), rel=1e-4)
    for size in (1e-3, 1e-2, 0.3):
        other = np.clip(Q + size * rng.normal(size=Q.shape), 0, 1)
        assert objective(other, scores, penalty) > lowest - 1e-4 * (1 + abs(lowest))


def test_without_penalty_the_posterior_is_the_prediction() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 3))
    assert np.array_equal(solve_posterior(scores, 0.0), expit(scores))


def test_the_penalty_lowers_the_rank() -> None:
    scores = np.random.default_rng(0).normal(size=(40, 6))
    values = [np.linalg.svd(solve_posterior(scores, t), compute_uv=False) for t in (0.0, 1.0, 10.0)]
    assert values[0].sum() > values[1].sum() > values[2].sum()
    assert values[2][1] < 0.05 * values[0][1] < 0.05 * values[2][0]


@given(st.integers(0, 10**6), st.floats(0.0, 3.0))
def test_singular_values_shrink(seed: int, amount: float) -> None:
    A = np.random.default_rng(seed).normal(size=(7, 4))
    U, s, V = np.linalg.svd(A, full_matrices=False)
    assert np.allclose(shrink_singular_values(A, amount), U * np.maximum(s - amount, 0) @ V, atol=1e-7)


def test_annotations_without_errors_give_logistic_regression() -> None:
    X, Y = labels(100)
    ours = PRLR(rank_penalty=1.0, missing=0.0, spurious=0.0, C=1.0, n_rounds=4).fit(X, Y)
    theirs = LR(C=1.0).fit(X, Y)
    assert np.array_equal(ours.posterior_, Y)
    assert np.allclose(ours.predict_soft(X), theirs.predict_soft(X), atol=2e-3)


def test_soft_targets_are_reproduced_if_the_penalty_is_weak() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    truth = np.array([[1.0, -1.0], [0.5, 0.0], [0.0, 2.0], [0.3, -0.2]])
    Q = expit(X @ truth[:-1] + truth[-1])
    assert np.allclose(fit_soft_logistic(X, Q, 1e8, np.zeros((4, 2))), truth, atol=1e-3)


def test_missing_labels_are_restored() -> None:
    """Two labels always occur together, and a fifth of the second is missing: the posterior restores it."""
    X, Y = labels(300)
    observed = Y.copy()
    lost = (np.random.default_rng(1).random(300) < 0.2) & (Y[:, 1] == 1)
    observed[lost, 1] = 0
    model = PRLR(rank_penalty=1.0, missing=0.2, spurious=0.01, C=1.0).fit(X, observed)
    assert np.mean(model.posterior_[lost, 1]) > 0.6
    assert np.mean(model.posterior_[Y[:, 1] == 0, 1]) < 0.15


def test_C_is_checked() -> None:
    with pytest.raises(ValueError, match="C must be"):
        PRLR(C=-1.0).fit(*labels(20))
