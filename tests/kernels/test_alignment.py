"""Weights of several kernels: ALIGNF against its definition."""

import numpy as np
import pytest

from psilearn import IOKR
from psilearn.kernels import Gaussian, Linear, Polynomial, alignf, centered_alignment, uniform, weighted
from psilearn.kernels.combine import alignf_weights, centered

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.column_stack([X[:, 0], np.sin(3 * X[:, 1])])
KERNELS = [Linear(), Gaussian(0.5), Gaussian(5.0), Polynomial(degree=2)]


def test_uniform_is_the_mean():
    np.testing.assert_allclose(uniform(KERNELS)(X), np.mean([kernel(X) for kernel in KERNELS], axis=0))


def test_weighted_leaves_out_weights_of_zero():
    np.testing.assert_allclose(weighted(KERNELS, [0, 2.0, 0, 0])(X), 2 * Gaussian(0.5)(X))


def test_no_other_weights_are_aligned_better():
    """The maximum over w ≥ 0 of the centered alignment, by random search and around the answer."""
    target = Linear()(Y)
    combined = alignf(KERNELS, X, Y, Linear())
    best = centered_alignment(combined(X), target)
    matrices = [kernel(X) for kernel in KERNELS]
    w = alignf_weights([centered(K.copy()) for K in matrices], centered(target.copy()))
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    np.testing.assert_allclose(combined(X), sum(a * K for a, K in zip(w, matrices, strict=True)), atol=1e-10)
    for trial in range(300):
        other = RNG.dirichlet(np.ones(4)) if trial % 2 else np.maximum(w + 0.03 * RNG.standard_normal(4), 0)
        mixed = sum(a * K for a, K in zip(other, matrices, strict=True))
        assert centered_alignment(mixed, target) <= best + 1e-10


def test_a_kernel_is_aligned_with_itself_alone():
    w = alignf_weights([centered(Gaussian(9.0)(X)), centered(Linear()(Y))], centered(Linear()(Y)))
    np.testing.assert_allclose(w, [0, 1], atol=1e-9)


def test_the_same_kernel_twice_is_no_trouble():
    w = alignf_weights([centered(Linear()(X))] * 2, centered(Linear()(Y)))
    assert w.sum() == pytest.approx(1)


def test_a_constant_kernel_has_the_weight_zero():
    matrices = [centered(kernel(X)) for kernel in KERNELS]
    target = centered(Linear()(Y))
    with_constant = alignf_weights([matrices[0], np.zeros((40, 40)), *matrices[1:]], target)
    np.testing.assert_allclose(np.delete(with_constant, 1), alignf_weights(matrices, target), atol=1e-12)
    assert with_constant[1] == 0


def test_alignment_is_a_correlation():
    K = Gaussian(0.5)(X)
    assert centered_alignment(K, K) == pytest.approx(1)
    assert centered_alignment(K, 3 * K + 7) == pytest.approx(1)  # constants are taken out
    H = np.eye(40) - 1 / 40
    L = Linear()(Y)
    a, b = H @ K @ H, H @ L @ H
    assert centered_alignment(K, L) == pytest.approx(np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b))


def test_an_aligned_kernel_is_an_input_kernel():
    model = IOKR(alignf(KERNELS, X, Y, Linear()), Linear(), alpha=1e-6).fit(X, Y)
    assert model.predict(X[:3]).shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: weighted([], []), "at least one kernel"),
        (lambda: weighted(KERNELS, [1.0]), "One weight per kernel"),
        (lambda: weighted(KERNELS, [-1, 1, 1, 1]), "≥ 0"),
        (lambda: weighted(KERNELS, [0, 0, 0, 0]), "one of them > 0"),
        (lambda: weighted(KERNELS, [np.nan, 1, 1, 1]), "≥ 0"),
        (lambda: uniform([]), "at least one kernel"),
        (lambda: alignf([], X, Y, Linear()), "at least one"),
        (lambda: alignf(KERNELS, X, Y[:-1], Linear()), "X has 40, y has 39"),
        (lambda: alignf(KERNELS, X, Y, None), "output kernel"),
        (lambda: alignf([Linear()], np.ones((5, 2)), Y[:5], Linear()), "constant"),
        (lambda: alignf_weights([-centered(Linear()(Y))], centered(Linear()(Y))), "aligned"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
