"""Expected-F1 maximization, compared with brute force over all label sets."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from lab_tests.baselines.toys import labels
from psilearn import IOKR
from psilearn.kernels import Dice, Gaussian
from psilearn.metrics import f1_score
from psilearn_lab.baselines import GFM, LR, maximize_expected_f1


def all_sets(n_labels: int) -> np.ndarray:
    return np.array(list(product([0, 1], repeat=n_labels)))


def joint_of(sets: np.ndarray, p: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return P(yᵢ=1, |y|=s) of distributions p (n, 2^L) over sets."""
    of_size = sets.sum(axis=1)[:, None] == sizes  # (2^L, S)
    return np.einsum("nc,ci,cs->nis", p, sets, of_size)


@pytest.mark.parametrize("allow_empty", [True, False])
@pytest.mark.parametrize("concentration", [0.02, 0.3, 5.0])
def test_no_set_has_a_larger_expected_f1(allow_empty: bool, concentration: float) -> None:
    sets = all_sets(6)
    p = np.random.default_rng(0).dirichlet(np.full(len(sets), concentration), size=60)
    total = sets.sum(axis=1)[:, None] + sets.sum(axis=1)
    pairwise = np.where(total == 0, 1.0, 2 * (sets @ sets.T) / np.maximum(total, 1))  # F1 of all pairs
    expected = p @ pairwise  # (n, sets)
    sizes = np.arange(1, 7)
    found = maximize_expected_f1(joint_of(sets, p, sizes), sizes, p[:, 0] if allow_empty else None)
    reached = expected[np.arange(len(p)), found @ (2 ** np.arange(6)[::-1])]
    allowed = expected if allow_empty else expected[:, 1:]
    assert np.allclose(reached, allowed.max(axis=1), atol=1e-12)
    assert allow_empty or found.any(axis=1).all()


def test_sizes_beyond_the_bound_are_not_visited() -> None:
    joint = np.zeros((1, 2000, 1))
    joint[0, :3, 0] = 0.9
    assert np.array_equal(np.flatnonzero(maximize_expected_f1(joint, np.array([3]))[0]), [0, 1, 2])


def test_kernel_ridge_with_dice_over_all_sets_maximizes_the_expected_f1() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    Y = (X @ rng.normal(size=(4, 7)) > 1).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    Q = rng.normal(size=(40, 4))
    model = IOKR(Gaussian(0.02), Dice(), alpha=1e-1).fit(X, Y)  # smooth: all weights below are positive
    weights = np.linalg.solve(Gaussian(0.02)(X, X) + 8 * np.eye(80), Gaussian(0.02)(X, Q)).T
    sizes = np.arange(1, 8)
    joint = np.einsum("qn,ni,ns->qis", weights, Y, Y.sum(axis=1)[:, None] == sizes)
    positive = (joint >= 0).all(axis=(1, 2))
    assert positive.sum() >= 10
    found = maximize_expected_f1(joint[positive], sizes)
    assert np.array_equal(model.predict(Q[positive], "all"), found)


@pytest.mark.parametrize("estimate", ["multinomial", "sizes"])
def test_estimates_are_probabilities_and_learn_labels(estimate: str) -> None:
    X, Y = labels()
    model = GFM(10.0, estimate=estimate).fit(X, Y)
    X_test, Y_test = labels(seed=1)
    assert model.score(X_test, Y_test) > 0.9
    assert model.score(X_test, Y_test) == pytest.approx(f1_score(Y_test, model.predict(X_test)))
    ((joint, empty),) = model._iter_joint(X_test)
    assert joint.shape == (len(X_test), 3, 3) and joint.min() >= 0
    assert empty.shape == (len(X_test),) and empty.min() >= 0
    assert np.allclose(model.predict_soft(X_test), joint.sum(axis=2))
    assert model.validation_error_ < 0.2 and not hasattr(model, "threshold_")
    as_csr = GFM(10.0, estimate=estimate).fit(sparse.csr_matrix(X), sparse.csr_matrix(Y))
    assert np.array_equal(as_csr.predict(sparse.csr_matrix(X_test)).toarray(), model.predict(X_test))


@pytest.mark.parametrize("estimate", ["multinomial", "sizes"])
def test_inputs_without_information_give_the_frequencies(estimate: str) -> None:
    _, Y = labels()
    zeros = np.zeros((len(Y), 2))
    joint, empty = GFM(1e4, estimate=estimate).fit(zeros, Y).estimate_.joint(zeros[:1], np.array([1, 2, 3]))
    frequencies = (Y[:, :, None] * (Y.sum(axis=1)[:, None] == [1, 2, 3])[:, None]).mean(axis=0)
    assert np.allclose(joint[0], frequencies, atol=2e-3)
    assert empty[0] == pytest.approx(np.mean(~Y.any(axis=1)), abs=2e-3)


def test_multinomial_classes_are_the_sizes_of_sets_with_the_label() -> None:
    X, Y = labels()
    joint, _ = GFM(1.0).fit(X, Y).estimate_.joint(X, np.array([1, 2, 3]))
    direct = LogisticRegression(C=1.0, max_iter=200).fit(X, Y[:, 2] * Y.sum(axis=1))
    assert np.allclose(joint[:, 2, direct.classes_[1:] - 1], direct.predict_proba(X)[:, 1:], atol=1e-3)


def test_at_least_one_label_unless_a_training_row_is_empty() -> None:
    X, Y = labels()
    far = 50 * np.array([[-1.0, -1.0, 0.0]])
    assert not GFM(10.0).fit(X, Y).predict(far).any()
    assert not LR(10.0).fit(X, Y).predict(far).any()
    nonempty = Y.any(axis=1)
    assert GFM(10.0).fit(X[nonempty], Y[nonempty]).predict(far).sum() >= 1


@pytest.mark.parametrize("estimate", ["multinomial", "sizes"])
def test_without_any_label_the_empty_set_is_predicted(estimate: str) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = GFM(C=1.0, estimate=estimate).fit(X, np.zeros((60, 3), dtype=int))
    assert not model.predict(X).any()


def test_negative_probabilities_are_rejected() -> None:
    with pytest.raises(ValueError, match="joint must have probabilities"):
        maximize_expected_f1(np.array([[[-0.1], [0.5]]]), np.array([1]))


def test_invalid_parameters() -> None:
    X, Y = labels(20)
    with pytest.raises(ValueError, match="estimate must be one of multinomial, sizes"):
        GFM(estimate="exact").fit(X, Y)
    with pytest.raises(ValueError, match="C must be"):
        GFM(C=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="predicts sets of labels"):
        GFM().fit(X, X)
