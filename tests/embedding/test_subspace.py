"""The learned subspace, checked against Algorithm 1 of the paper and against its own invariants."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor

from psilearn import KDE, OEL
from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn._utils.samples import concat, n_samples, take
from psilearn.embedding import algorithm_1
from psilearn.estimators import fit_plan
from psilearn.kernels import Gaussian, Kernel, Linear
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


@pytest.fixture
def skip_coordinates(monkeypatch):
    """Let OEL and KDE find directions from the Gram matrix itself, however small it is."""
    monkeypatch.setattr(fit_plan, "skips_coordinates", lambda *arguments: arguments[2].uses_unlabeled)


@pytest.mark.parametrize("supervision", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_coordinates_agree_with_algorithm_1(problem, supervision, with_unlabeled):
    check_against_algorithm_1(problem, supervision, with_unlabeled)


@pytest.mark.usefixtures("skip_coordinates")
@pytest.mark.parametrize("supervision", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_the_gram_matrix_without_coordinates_agrees_with_algorithm_1(problem, supervision, with_unlabeled):
    check_against_algorithm_1(problem, supervision, with_unlabeled)


def check_against_algorithm_1(problem, supervision, with_unlabeled):
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
    a, b = (model.embed(X) @ model.transform_outputs(U).T for model in (iterated, dense))  # signs are not determined
    np.testing.assert_allclose(a, b, atol=1e-7)


def make_outputs(n=60, m=140):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)), rng.standard_normal((n, 4)), rng.standard_normal((m, 4))


def fit_twice(monkeypatch, **parameters):
    """Fit the same model with coordinates and without them."""
    X, Y, U = make_outputs()
    model = OEL(KERNEL_X, Gaussian(0.3), alpha=ALPHA, n_components=6, supervision=0.3, **parameters)
    with_coordinates = clone(model).fit(X, Y, U)
    monkeypatch.setattr(fit_plan, "skips_coordinates", lambda *arguments: True)
    return with_coordinates, clone(model).fit(X, Y, U)


def test_without_coordinates_the_embedding_has_orthonormal_rows(monkeypatch):
    _, model = fit_twice(monkeypatch)
    basis, K = model.embedding_.basis, block(model.output_kernel_, model.embedding_.landmarks)
    np.testing.assert_allclose(basis.T @ K @ basis, np.eye(6), atol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_models_with_and_without_coordinates_predict_the_same(monkeypatch, dtype):
    before, after = fit_twice(monkeypatch, dtype=dtype)
    X = np.random.default_rng(1).standard_normal((30, 3))
    np.testing.assert_array_equal(before.predict(X), after.predict(X))
    assert before.regression_.coefficients.dtype == after.regression_.coefficients.dtype


@pytest.mark.parametrize(
    ("parameters", "kernel", "expected"),
    [
        ({}, Gaussian(0.3), True),
        ({"supervision": 0.0}, Gaussian(0.3), True),
        ({"supervision": 1.0}, Gaussian(0.3), False),  # the unlabeled outputs do not matter
        ({"n_components": 150}, Gaussian(0.3), False),
        ({"n_components": None}, Gaussian(0.3), False),
        ({"input_landmarks": 20}, Gaussian(0.3), False),
        ({"output_landmarks": 50}, Gaussian(0.3), False),
        ({"regressor": KNeighborsRegressor()}, Gaussian(0.3), False),
        ({}, Linear(), False),  # of rank 4: its coordinates are cheaper
    ],
)
def test_coordinates_are_skipped_where_they_cost_more(monkeypatch, parameters, kernel, expected):
    monkeypatch.setattr("psilearn._linalg.eigen.DENSE_LIMIT", 10)
    made = []
    gram_outputs = fit_plan.GramOutputs
    monkeypatch.setattr(fit_plan, "GramOutputs", lambda *arguments: made.append(1) or gram_outputs(*arguments))
    X, Y, U = make_outputs()
    options = {"n_components": 4, "supervision": 0.3, "input_kernel": KERNEL_X} | parameters
    if "regressor" in options:
        del options["input_kernel"]
    OEL(output_kernel=kernel, alpha=ALPHA, **options).fit(X, Y, U)
    assert bool(made) == expected


@pytest.mark.usefixtures("skip_coordinates")
def test_without_coordinates_an_indefinite_kernel_is_named():
    class Indefinite(Kernel):  # k(a, b) = 1 − |a − b|², with one positive and several negative eigenvalues
        def _block(self, A, B, compute):
            return 1 - Linear().squared_distances(A, B)

        def _diag(self, A):
            return np.ones(len(A))

    X, Y, U = make_outputs()
    with pytest.raises(NotPositiveSemidefiniteError, match=r"output_kernel = Indefinite\(\) is not positive semi"):
        OEL(KERNEL_X, Indefinite(), alpha=ALPHA, n_components=3, supervision=0.3).fit(X, Y, U)
