"""The two routes to predictions along a path against each other; the naive loop is in test_search.py."""

import numpy as np
import pytest

from psilearn._backend import asarray, rows_of, to_host
from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn.embedding import OutputCoordinates
from psilearn.embedding.subspace_path import DiagonalMoment
from psilearn.kernels import Dice, Gaussian, Kemeny, Pairwise
from psilearn.model_selection.regression_routes import CholeskyRoute, EigenRoute, route_for
from psilearn.rankings import all_rankings

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X, HELD = RNG.standard_normal((60, 3)), RNG.standard_normal((9, 3))
ALPHAS, SUPERVISIONS, SIZES = [1e-4, 1e-1], [0.0, 0.3, 1.0], [1, 3]


def side(kernel, outputs):
    index = RNG.integers(0, len(outputs), 60)
    moment = DiagonalMoment.of(
        OutputCoordinates(kernel, outputs).values, np.bincount(index, minlength=len(outputs)) / 60
    )
    return moment, rows_of(moment.values, index)


@pytest.fixture(scope="module")
def sides(backend):
    """Moments and targets of two output kernels."""
    tags = np.unique(RNG.integers(0, 2, (20, 5)), axis=0)
    return list(zip(side(Kemeny(), all_rankings(4)), side(Dice(), tags), strict=True))


@pytest.mark.parametrize("sizes", [SIZES, None], ids=["learned", "everything"])
def test_both_routes_predict_the_same(sides, sizes):
    moments, targets = sides
    routes = (
        EigenRoute(Gaussian(0.3), X, HELD, targets.__getitem__),
        CholeskyRoute(Gaussian(0.3), X, HELD, targets, ALPHAS),
    )
    for which, moment in enumerate(moments):
        steps = [list(route.steps(which, moment, ALPHAS, SUPERVISIONS, sizes)) for route in routes]
        assert len(steps[0]) == len(steps[1]) == (6 if sizes else 2)
        for (V, Z), (other_V, other_Z) in zip(*steps, strict=True):
            if V is None:
                assert other_V is None
                np.testing.assert_allclose(to_host(Z), to_host(other_Z), atol=1e-9)
            else:  # one subspace; its basis may have other signs
                np.testing.assert_allclose(to_host(V @ V.T), to_host(other_V @ other_V.T), atol=1e-6)
                np.testing.assert_allclose(to_host(Z @ V.T), to_host(other_Z @ other_V.T), atol=1e-6)


def route(targets, alphas, kernel=None, X=X, held=HELD):
    widths = [target.shape[1] for target in targets]
    return route_for(kernel or Gaussian(0.3), X, held, targets.__getitem__, widths, alphas)


def test_factors_serve_few_ridges_and_few_dimensions(sides):
    targets = sides[1][:1]
    assert isinstance(route(targets, ALPHAS), CholeskyRoute)
    assert isinstance(route(targets, np.geomspace(1e-5, 1, 20)), EigenRoute)
    assert isinstance(route([asarray(RNG.standard_normal((60, 59)))], ALPHAS), EigenRoute)
    assert isinstance(route(targets, ALPHAS, held=None), EigenRoute)  # leave-one-out


def test_an_indefinite_kernel_is_named_on_either_route(sides):
    minus = Pairwise(lambda a, b: -float(a @ b))
    with pytest.raises(NotPositiveSemidefiniteError, match=r"input_kernel = Pairwise.* is not positive semi-definite"):
        route(sides[1][:1], ALPHAS, minus, list(X), list(HELD))
