"""Predictions without candidates: ridge regression with the linear kernel, distributions with Hellinger's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge

from psilearn import IOKR, IOKRCV, KDE, OEL
from psilearn.kernels import Curves, Gaussian, Hellinger, Linear

RNG = np.random.default_rng(0)
X, X_NEW = RNG.standard_normal((40, 3)), RNG.standard_normal((7, 3))
Y = np.hstack([np.sin(X), X[:, :1] ** 2])


def ridge(targets, alpha):
    return KernelRidge(alpha=len(X) * alpha, kernel="rbf", gamma=0.3).fit(X, targets).predict(X_NEW)


@pytest.mark.parametrize("kernel", [Linear(), 2 * Linear(), Curves(width=0.5)])
def test_the_mean_of_iokr_is_kernel_ridge_regression(kernel):
    model = IOKR(Gaussian(0.3), kernel, alpha=1e-3).fit(X, Y)
    np.testing.assert_allclose(model.predict_mean(X_NEW), ridge(Y, 1e-3), atol=1e-8)


@pytest.mark.parametrize("form", [sparse.csr_matrix, lambda rows: rows[:, 0]])
def test_outputs_in_other_forms(form):
    outputs = np.abs(Y).round(1)
    model = IOKR(Gaussian(0.3), Linear(), alpha=1e-3).fit(X, form(outputs))
    expected = ridge(outputs, 1e-3)
    found = model.predict_mean(X_NEW)
    np.testing.assert_allclose(found, expected[:, 0] if found.ndim == 1 else expected, atol=1e-8)


@pytest.mark.parametrize("estimator", [OEL(n_components=2, supervision=0.5), KDE(n_components=2)])
def test_the_mean_of_an_embedding_is_its_projection(estimator):
    model = estimator.set_params(input_kernel=Gaussian(0.3), output_kernel=Linear(), alpha=1e-3).fit(X, Y)
    mean = model.predict_mean(X_NEW)
    np.testing.assert_allclose(model.transform_outputs(mean), model.embed(X_NEW), atol=1e-10)
    assert np.linalg.matrix_rank(mean, tol=1e-8) == 2


def test_outputs_that_are_all_zero():
    model = IOKR(Gaussian(0.3), Linear()).fit(X, np.zeros((40, 3)))
    assert model.predict_mean(X_NEW).tolist() == np.zeros((7, 3)).tolist()


def test_distributions():
    logits = np.stack([X[:, 0], X[:, 1], np.zeros(40)], axis=1)
    histograms = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    model = IOKR(Gaussian(0.3), Hellinger(), alpha=1e-3).fit(X, histograms)
    mean = model.predict_mean(X_NEW)
    roots = np.maximum(ridge(np.sqrt(histograms), 1e-3), 0)
    np.testing.assert_allclose(mean, roots**2 / (roots**2).sum(axis=1, keepdims=True), atol=1e-8)


def test_the_mean_is_nearer_than_every_candidate():
    model = IOKR(Gaussian(0.3), Curves(), alpha=1e-3).fit(X, Y)
    mean = model.predict_mean(X_NEW)
    own = model.predict_topk(X_NEW, 1, candidates=[row[None] for row in mean]).distances
    assert (own <= model.predict_topk(X_NEW, 1).distances).all()


def test_a_search_predicts_the_mean_of_its_best_estimator():
    search = IOKRCV(Gaussian(0.3), Linear(), alphas=1e-3, cv=2).fit(X, Y)
    assert np.array_equal(search.predict_mean(X_NEW), search.best_estimator_.predict_mean(X_NEW))


def test_other_kernels_need_candidates():
    with pytest.raises(TypeError, match=r"output_kernel is Gaussian.*Use predict, with candidates"):
        IOKR(Gaussian(0.3), Gaussian(0.3)).fit(X, Y).predict_mean(X_NEW)
