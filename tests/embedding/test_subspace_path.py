"""Subspaces along λ and c against the moment of each setting, formed and decomposed anew."""

import numpy as np
import pytest

from psilearn._backend import current_compute, to_numpy
from psilearn.embedding.subspace_path import DiagonalMoment, RitzSpace, SubspacePath
from psilearn.kernels import Gaussian
from psilearn.regression import KernelRidge, RidgePath
from tests.problems import asarray

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
VALUES = RNG.standard_normal((120, 50)) * np.arange(1, 51) ** -0.7  # coordinates of 120 outputs, the first 30 labeled
FREQUENCIES = np.r_[np.zeros(30), np.full(90, 1 / 90)]
ALPHAS, SUPERVISIONS = [1e-5, 1e-2], [0.0, 0.2, 0.7, 1.0]


def formed(moment, alpha, c):
    """M_c by its definition, from the smoothed outputs."""
    H = to_numpy(KernelRidge(Gaussian(0.5), alpha).fit(X).regress(moment.values[:30]).moment.parts[0][0])
    values = to_numpy(moment.values)
    return c / 30 * H.T @ H + (1 - c) * (values.T * FREQUENCIES) @ values


def test_the_outputs_moment_becomes_diagonal():
    moment = DiagonalMoment.of(asarray(VALUES), FREQUENCIES, current_compute())
    values, sigma = to_numpy(moment.values), to_numpy(moment.sigma)
    np.testing.assert_allclose((values.T * FREQUENCIES) @ values, np.diag(sigma), atol=1e-12)
    np.testing.assert_allclose(values @ values.T, VALUES @ VALUES.T, atol=1e-10)
    np.testing.assert_allclose(VALUES @ to_numpy(moment.rotation), values, atol=1e-12)
    assert (np.diff(sigma) <= 0).all()


def subspace_path(moment):
    ridge = RidgePath(Gaussian(0.5)).fit(X)
    return SubspacePath(moment.sigma, ridge, ridge.vectors_.T @ moment.values[:30])


@pytest.mark.parametrize(("small", "atol"), [(500, 1e-9), (5, 1e-6)], ids=["dense", "iterated"])
@pytest.mark.parametrize("k", [1, 4, 8])
def test_every_point_holds_the_leading_eigenvectors(monkeypatch, small, atol, k):
    monkeypatch.setattr("psilearn.embedding.subspace_path.MAX_DENSE_ORDER", small)
    moment = DiagonalMoment.of(asarray(VALUES), FREQUENCIES, current_compute())
    path = subspace_path(moment)
    points = list(path.points(ALPHAS, SUPERVISIONS, k))
    assert [(p.alpha, p.supervision) for p in points] == [(a, c) for a in ALPHAS for c in SUPERVISIONS]
    for point in points:
        M = formed(moment, point.alpha, point.supervision)
        exact = np.linalg.eigvalsh(M)[::-1][:k]
        eigenvalues, V = to_numpy(point.eigenvalues), to_numpy(point.directions)
        np.testing.assert_allclose(eigenvalues, exact, atol=atol * exact[0])
        np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-9)
        assert np.linalg.norm(M @ V - V * eigenvalues, axis=0).max() <= 2 * max(atol, 1e-9) * exact[0]
        labeled = path.ridge.vectors_.T @ moment.values[:30] @ point.directions
        np.testing.assert_allclose(to_numpy(point.coordinates(path.B)), to_numpy(labeled), atol=1e-9)


def test_a_smaller_space_holds_the_leading_eigenvectors(monkeypatch):
    monkeypatch.setattr("psilearn.embedding.subspace_path.MAX_DENSE_ORDER", 10)
    values = RNG.standard_normal((400, 300)) * np.arange(1, 301) ** -1.5
    frequencies = np.r_[np.zeros(30), np.full(370, 1 / 370)]
    given = asarray(values)
    compute = current_compute()
    whole, part = (
        DiagonalMoment.of(given, frequencies, compute),
        DiagonalMoment.leading(given, frequencies, 30, 4, compute),
    )
    kept = to_numpy(part.values)
    assert kept.shape == (400, 8 * 4 + 30)
    np.testing.assert_allclose(kept, values @ to_numpy(part.rotation), atol=1e-12)
    np.testing.assert_allclose(kept[:30] @ kept[:30].T, values[:30] @ values[:30].T, atol=1e-10)
    points = [subspace_path(m).points(ALPHAS, SUPERVISIONS, 4) for m in (whole, part)]
    for exact, found in zip(*points, strict=True):
        eigenvalues = to_numpy(exact.eigenvalues)
        np.testing.assert_allclose(to_numpy(found.eigenvalues), eigenvalues, atol=1e-6 * eigenvalues[0])
        G, exact_G = (to_numpy(m.values @ point.directions) for m, point in ((part, found), (whole, exact)))  # (400, 4)
        np.testing.assert_allclose(G @ G.T, exact_G @ exact_G.T, atol=1e-4)


def test_no_smaller_space_where_the_moment_leads_out_of_it_or_little_is_saved(monkeypatch):
    monkeypatch.setattr("psilearn.embedding.subspace_path.MAX_DENSE_ORDER", 10)
    flat = asarray(RNG.standard_normal((400, 300)))
    assert DiagonalMoment.leading(flat, np.full(400, 1 / 400), 30, 4, current_compute()).values.shape == (400, 300)
    steep = flat * asarray(np.arange(1, 301) ** -1.5)
    assert DiagonalMoment.leading(steep, np.full(400, 1 / 400), 130, 4, current_compute()).values.shape == (400, 300)


def test_more_components_than_pairs_stop_at_the_rank():
    moment = DiagonalMoment.of(asarray(VALUES), FREQUENCIES, current_compute())
    path = subspace_path(moment)
    supervised, mixed = path.points([1e-3], [1.0, 0.5][::-1], 45)
    assert supervised.directions.shape == (50, 45) and mixed.directions.shape[1] <= 30


def test_a_space_keeps_what_it_found():
    moment = DiagonalMoment.of(asarray(VALUES), FREQUENCIES, current_compute())
    path = subspace_path(moment)
    weights = path.ridge.shrinkage(1e-4) ** 2 / 30
    space = RitzSpace(moment.sigma, path.B, 6, path._supervised(weights, 3)[1])
    space.top_eigh(0.6, 0.4 * weights, 3)
    size = space.T.shape[1]
    values, _ = space.top_eigh(0.6, 0.4 * weights, 3)
    assert space.T.shape[1] == size  # nothing to add for the same problem
    np.testing.assert_allclose(to_numpy(values), np.linalg.eigvalsh(formed(moment, 1e-4, 0.4))[::-1][:3], rtol=1e-6)
    W = np.column_stack([np.eye(50, 6), to_numpy(space.T)])
    np.testing.assert_allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-10)


def test_coordinates_without_outputs_are_dropped():
    frequencies = np.where(np.arange(len(VALUES)) < 20, 0.05, 0.0)  # 20 outputs span 20 dimensions
    moment = DiagonalMoment.of(asarray(VALUES), frequencies, current_compute())
    part = moment.without_null_space()
    values = to_numpy(part.values)
    assert values.shape == (len(VALUES), 20) and part.rotation.shape == (VALUES.shape[1], 20)
    np.testing.assert_allclose(values[:20] @ values.T, VALUES[:20] @ VALUES.T, atol=1e-9)
    nothing = DiagonalMoment.of(asarray(0 * VALUES), frequencies, current_compute()).without_null_space()
    assert nothing.values.shape == (len(VALUES), 1)
