"""Regressions onto the outputs equal output kernel regressions with a linear kernel, before the decoding."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.neighbors import NearestNeighbors

from lab_tests.baselines.toys import labels, numbers
from psilearn import IOKR, OEL
from psilearn.kernels import Gaussian, Linear, Tanimoto
from psilearn_lab.baselines import KNN, KRR, PLS, RRR


def test_krr_is_iokr_with_a_linear_output_kernel() -> None:
    X, Y = numbers(60)
    X_test, C = numbers(30, seed=1)
    direct = KRR(Gaussian(0.3), alpha=1e-3).fit(X, Y)
    model = IOKR(Gaussian(0.3), Linear(), alpha=1e-3).fit(X, Y)
    soft = direct.predict_soft(X_test)
    assert np.allclose(((soft - C) ** 2).sum(axis=1), paired_distances(model, X_test, C))
    assert np.array_equal(direct.predict(X_test, C), model.predict(X_test, C))
    assert np.array_equal(direct.truth_positions(X_test, C, C).nearer, model.truth_positions(X_test, C, C).nearer)


@pytest.mark.parametrize("p", [1, 2])
def test_rrr_is_oel0_with_a_linear_output_kernel(p: int) -> None:
    X, Y = numbers(60)
    X_test, C = numbers(30, seed=1)
    direct = RRR(Gaussian(0.3), alpha=1e-3, n_components=p).fit(X, Y)
    model = OEL(Gaussian(0.3), Linear(), alpha=1e-3, n_components=p, supervision=1.0).fit(X, Y)
    soft = direct.predict_soft(X_test)
    assert np.linalg.matrix_rank(soft, tol=1e-8) == p
    assert np.allclose(((soft - C) ** 2).sum(axis=1), paired_distances(model, X_test, C))
    assert np.array_equal(direct.predict(X_test, C), model.predict(X_test, C))


def paired_distances(model: IOKR, X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """|G*z(xᵢ) − ψ(cᵢ)|²."""
    top = model.predict_topk(X, len(C), C)
    return np.take_along_axis(top.distances, np.argsort(top.indices, axis=1), axis=1)[
        np.arange(len(C)), np.arange(len(C))
    ]


def test_rrr_of_full_rank_is_krr() -> None:
    X, Y = labels(60)
    full = RRR(Gaussian(0.3), alpha=1e-3, n_components=50).fit(X, Y)
    assert np.allclose(full.predict_soft(X), KRR(Gaussian(0.3), alpha=1e-3).fit(X, Y).predict_soft(X))


def test_krr_accepts_the_objects_of_its_kernel() -> None:
    X, Y = labels(60)
    bits = (X > 0).astype(int)
    model = KRR(Tanimoto(), alpha=1e-2).fit(bits, Y)
    texts = ["".join("ab"[b] for b in row) for row in bits]
    by_text = KRR(lambda a, b: Tanimoto()([[c == "b" for c in a]], [[c == "b" for c in b]])[0, 0], alpha=1e-2)
    assert np.allclose(by_text.fit(texts, Y).predict_soft(texts), model.predict_soft(bits))


def test_pls_is_that_of_scikit_learn() -> None:
    X, Y = numbers(60)
    ours = PLS(n_components=2).fit(X, Y)
    assert np.allclose(ours.predict(X), PLSRegression(2, scale=False).fit(X, Y).predict(X), atol=1e-6)
    assert np.allclose(PLS(n_components=2).fit(sparse.csr_matrix(X), Y).predict(X), ours.predict(X))
    assert PLS(n_components=50).fit(X, Y).predict(X).shape == Y.shape


def test_knn_is_the_mean_of_the_neighbours() -> None:
    X, Y = numbers(60)
    places = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(X + 0.01, return_distance=False)
    assert np.allclose(KNN(n_neighbors=4).fit(X, Y).predict(X + 0.01), Y[places].mean(axis=1))
    assert np.allclose(KNN(n_neighbors=500).fit(X, Y).predict(X[:1]), Y.mean(axis=0))
