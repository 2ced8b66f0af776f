"""The two routes to predictions along a path against each other; refits are in test_path_scores.py."""

import numpy as np
import pytest

from psilearn._backend import current_compute, take_rows, to_numpy
from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn.embedding import OutputCoordinates
from psilearn.embedding.subspace_path import DiagonalMoment
from psilearn.kernels import Dice, Gaussian, Kemeny, Pairwise
from psilearn.model_selection.grids import PathGrid
from psilearn.model_selection.regression_routes import CholeskyRoute, EigenRoute, choose_route
from psilearn.rankings import all_rankings
from tests.problems import asarray

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X, HELD = RNG.standard_normal((60, 3)), RNG.standard_normal((9, 3))
ALPHAS, SUPERVISIONS, SIZES = [1e-4, 1e-1], [0.0, 0.3, 1.0], [1, 3]


class Outputs:
    """Training targets in coordinates with a diagonal moment."""

    def __init__(self, kernel, outputs):
        compute = current_compute()
        index = RNG.integers(0, len(outputs), 60)
        values = OutputCoordinates(kernel, outputs, compute).values
        self.moment = DiagonalMoment.of(values, np.bincount(index, minlength=len(outputs)) / 60, compute)
        self.targets = take_rows(self.moment.values, index)

    def training_targets(self):
        return self.targets


@pytest.fixture(scope="module")
def outputs(backend):
    tags = np.unique(RNG.integers(0, 2, (20, 5)), axis=0)
    return [Outputs(Kemeny(), all_rankings(4)), Outputs(Dice(), tags)]


@pytest.mark.parametrize("sizes", [SIZES, None], ids=["learned", "everything"])
def test_both_routes_predict_the_same(outputs, sizes):
    compute, grid = current_compute(), PathGrid(ALPHAS, SUPERVISIONS, sizes)
    routes = (
        EigenRoute(Gaussian(0.3), X, HELD, outputs.__getitem__, compute),
        CholeskyRoute(Gaussian(0.3), X, HELD, outputs.__getitem__, 2, ALPHAS, compute),
    )
    for which in range(2):
        steps = [list(route.steps(which, grid)) for route in routes]
        assert len(steps[0]) == len(steps[1]) == grid.n_steps == (6 if sizes else 2)
        for (V, Z), (other_V, other_Z) in zip(*steps, strict=True):
            if V is None:
                assert other_V is None
                np.testing.assert_allclose(to_numpy(Z), to_numpy(other_Z), atol=1e-9)
            else:  # one subspace; its basis may have other signs
                np.testing.assert_allclose(to_numpy(V @ V.T), to_numpy(other_V @ other_V.T), atol=1e-6)
                np.testing.assert_allclose(to_numpy(Z @ V.T), to_numpy(other_Z @ other_V.T), atol=1e-6)


def route(outputs, alphas, kernel=None, X=X, held=HELD, sizes=None):
    widths = [part.targets.shape[1] for part in outputs]
    grid = PathGrid(alphas, SUPERVISIONS, sizes)
    return choose_route(kernel or Gaussian(0.3), X, held, outputs.__getitem__, widths, grid, None, current_compute())


def test_factors_serve_few_ridges_and_few_dimensions(outputs):
    assert isinstance(route(outputs[1:], ALPHAS), CholeskyRoute)
    assert isinstance(route(outputs[1:], np.geomspace(1e-5, 1, 20)), EigenRoute)
    assert isinstance(route(outputs[1:], ALPHAS, held=None), EigenRoute)  # leave-one-out
    wide = Outputs(Kemeny(), all_rankings(4))
    wide.targets = asarray(RNG.standard_normal((60, 59)))
    assert isinstance(route([wide], ALPHAS), EigenRoute)
    wide.targets = wide.targets[:, :30]  # four factors per λ; each eigenproblem costs 3/2 factors
    assert isinstance(route([wide], ALPHAS), CholeskyRoute)
    assert isinstance(route([wide], ALPHAS, sizes=SIZES), EigenRoute)


def test_an_indefinite_kernel_is_named_on_either_route(outputs):
    minus = Pairwise(lambda a, b: -float(a @ b))
    with pytest.raises(NotPositiveSemidefiniteError, match=r"input_kernel = Pairwise.* is not positive semi-definite"):
        route(outputs[:1], ALPHAS, minus, list(X), list(HELD))
