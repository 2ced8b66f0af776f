"""The learned subspace, checked against Algorithm 1 of the paper and against its own invariants."""

import numpy as np
import pytest

from psilearn import KDE, OEL
from psilearn._utils.samples import concat, n_samples, take
from psilearn.embedding import algorithm_1
from psilearn.kernels import Gaussian
from tests.problems import block

pytestmark = pytest.mark.usefixtures("backend")

KERNEL_X = Gaussian(0.5)
ALPHA = 1e-3


def reference(problem, p, c, unlabeled):
    """Algorithm 1 on all n + m points, repeated outputs and all."""
    k = problem.kernel
    return algorithm_1(
        block(KERNEL_X, problem.X),
        block(k, problem.Y),
        block(k, problem.Y, unlabeled),
        block(k, unlabeled),
        alpha=ALPHA,
        n_components=p,
        supervision=c,
    )


@pytest.mark.parametrize("supervision", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_coordinates_agree_with_algorithm_1(problem, supervision, with_unlabeled):
    p = 3
    U = problem.unlabeled if with_unlabeled else problem.Y
    model = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=p, supervision=supervision)
    model.fit(problem.X, problem.Y, unlabeled=problem.unlabeled if with_unlabeled else None)
    dual = reference(problem, p, supervision, U)
    np.testing.assert_allclose(model.eigenvalues_, dual.eigenvalues, rtol=1e-8)
    # The bases may differ by signs; inner products of embedded outputs may not.
    k = problem.kernel
    g = model.transform_outputs(problem.candidates)
    g_dual = dual.embed_outputs(block(k, problem.candidates, problem.Y), block(k, problem.candidates, U))
    np.testing.assert_allclose(g @ g.T, g_dual @ g_dual.T, atol=1e-7)
    # z(x) = Gĥ(x) = Σᵢ αᵢ(x) g(yᵢ)
    n = len(problem.X)
    K = block(KERNEL_X, problem.X)
    weights = np.linalg.solve(K + n * ALPHA * np.eye(n), block(KERNEL_X, problem.X, problem.X_test)).T
    z_dual = weights @ dual.embed_outputs(block(k, problem.Y), block(k, problem.Y, U))
    np.testing.assert_allclose(model.embed(problem.X_test) @ g.T, z_dual @ g_dual.T, atol=1e-7)


def test_algorithm_1_returns_the_embedding_of_its_own_points(problem):
    # GY = Kβ: the first n rows are √(c/n) Gĥ(xᵢ), the others √((1−c)/m) g(uⱼ).
    dual = reference(problem, 3, 0.4, problem.unlabeled)
    k = problem.kernel
    g_u = dual.embed_outputs(block(k, problem.unlabeled, problem.Y), block(k, problem.unlabeled))
    n, m = n_samples(problem.Y), n_samples(problem.unlabeled)
    np.testing.assert_allclose(dual.GY[n:], np.sqrt(0.6 / m) * g_u, atol=1e-8)
    g_y = dual.embed_outputs(block(k, problem.Y), block(k, problem.Y, problem.unlabeled))
    np.testing.assert_allclose(dual.GY[:n], np.sqrt(0.4 / n) * dual.smoother.T @ g_y, atol=1e-8)


@pytest.mark.parametrize("supervision", [0.0, 0.3, 1.0])
def test_G_has_orthonormal_rows(problem, supervision):
    model = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=supervision).fit(
        problem.X, problem.Y, problem.unlabeled
    )
    landmarks, basis = model.embedding_.landmarks, model.embedding_.basis
    # G* z = Σ_s (basis z)_s ψ(s), so GG* = basisᵀ k(S, S) basis
    np.testing.assert_allclose(basis.T @ block(problem.kernel, landmarks) @ basis, np.eye(3), atol=1e-8)


@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_without_supervision_oel_is_kde(problem, with_unlabeled):
    U = problem.unlabeled if with_unlabeled else None
    oel = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=4, supervision=0.0).fit(problem.X, problem.Y, U)
    kde = KDE(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=4).fit(problem.X, problem.Y, U)
    np.testing.assert_array_equal(oel.embed(problem.X_test), kde.embed(problem.X_test))
    np.testing.assert_array_equal(oel.eigenvalues_, kde.eigenvalues_)


def test_kde_is_uncentred_kernel_pca():
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((30, 2)), rng.standard_normal((30, 3))
    kernel = Gaussian(0.4)
    model = KDE(KERNEL_X, kernel, alpha=ALPHA, n_components=5).fit(X, Y)
    mu, U = np.linalg.eigh(block(kernel, Y) / 30)
    scores = U[:, ::-1][:, :5] * np.sqrt(30 * mu[::-1][:5])  # √μ u, the textbook scores
    np.testing.assert_allclose(model.eigenvalues_, mu[::-1][:5], rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform_outputs(Y)), np.abs(scores), atol=1e-9)


def test_unlabeled_outputs_have_no_say_in_a_fully_supervised_embedding(problem):
    with_them = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=1.0).fit(
        problem.X, problem.Y, problem.unlabeled
    )
    without = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=1.0).fit(problem.X, problem.Y)
    np.testing.assert_allclose(with_them.embed(problem.X_test), without.embed(problem.X_test), atol=1e-9)


def test_repeating_every_unlabeled_output_changes_nothing(problem):
    once = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=0.3).fit(
        problem.X, problem.Y, problem.unlabeled
    )
    twice = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=0.3)
    twice.fit(problem.X, problem.Y, concat([problem.unlabeled, problem.unlabeled]))
    np.testing.assert_allclose(once.eigenvalues_, twice.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(once.embed(problem.X_test), twice.embed(problem.X_test), atol=1e-9)


def test_order_of_the_training_pairs_does_not_matter(problem):
    order = np.random.default_rng(5).permutation(n_samples(problem.Y))
    model = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=0.3).fit(
        problem.X, problem.Y, problem.unlabeled
    )
    other = OEL(KERNEL_X, problem.kernel, alpha=ALPHA, n_components=3, supervision=0.3)
    other.fit(problem.X[order], take(problem.Y, order), problem.unlabeled)
    a, b = (m.embed(problem.X_test) for m in (model, other))
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-8)


def test_iterated_and_dense_eigenvectors_give_the_same_embedding(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y, U = rng.standard_normal((60, 3)), rng.standard_normal((60, 4)), rng.standard_normal((140, 4))
    dense = OEL(KERNEL_X, Gaussian(0.3), alpha=ALPHA, n_components=6, supervision=0.3).fit(X, Y, U)
    monkeypatch.setattr("psilearn._linalg.eigen.DENSE_LIMIT", 10)
    iterated = OEL(KERNEL_X, Gaussian(0.3), alpha=ALPHA, n_components=6, supervision=0.3).fit(X, Y, U)
    np.testing.assert_allclose(iterated.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(iterated.embed(X), dense.embed(X), atol=1e-7)
