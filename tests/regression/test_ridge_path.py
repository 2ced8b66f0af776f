import numpy as np
import pytest

from psilearn._backend import to_numpy
from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn._utils.samples import take
from psilearn.embedding import OutputCoordinates
from psilearn.kernels import Gaussian, Linear, Pairwise
from psilearn.landmarks import Landmarks
from psilearn.regression import KernelRidge, NystromPath, RidgePath
from tests.problems import asarray, block, make

pytestmark = pytest.mark.usefixtures("backend")

KERNEL = Gaussian(0.5)
ALPHAS = [1e-6, 1e-3, 1e-1, 10.0]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_path_is_the_ridge_at_every_lambda(alpha):
    problem = make("vectors")
    path, ridge = RidgePath(KERNEL).fit(problem.X), KernelRidge(KERNEL, alpha).fit(problem.X)
    V = asarray(problem.Y)
    np.testing.assert_allclose(to_numpy(path.solve(V, alpha)), to_numpy(ridge.solve(V)), rtol=1e-6, atol=1e-7)
    smoothed = path.vectors_ @ (path.shrinkage(alpha)[:, None] * (path.vectors_.T @ V))
    np.testing.assert_allclose(to_numpy(smoothed), to_numpy(ridge.regress(V).moment.parts[0][0]), atol=1e-8)
    weights = path.rotated(problem.X_test) * path.inverse(alpha) @ path.vectors_.T
    np.testing.assert_allclose(to_numpy(weights), to_numpy(ridge.weights(problem.X_test)), atol=1e-7)


def test_leave_one_out_is_n_refits(problem):
    # Without pair i, the ridge stays nλ: alpha·n/(n−1) on n−1 pairs. Errors by kernel values alone, no coordinates.
    path = RidgePath(KERNEL).fit(problem.X)
    errors = path.leave_one_out(OutputCoordinates(problem.kernel, problem.Y).values, ALPHAS)
    n, k = len(problem.X), problem.kernel
    K = block(k, problem.Y)
    for alpha, row in zip(ALPHAS, errors, strict=True):
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            ridge = KernelRidge(KERNEL, alpha * n / (n - 1)).fit(take(problem.X, rest))
            a = to_numpy(ridge.weights(problem.X[i : i + 1]))[0]
            expected = K[i, i] - 2 * a @ K[rest, i] + a @ K[np.ix_(rest, rest)] @ a
            assert row[i] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_lengths_and_indefinite_kernels():
    X = make("vectors").X
    with pytest.raises(ValueError, match=r"V must be \(n, r\) with n = 40, as fitted; got shape \(3, 1\)"):
        RidgePath(KERNEL).fit(X).leave_one_out(asarray(np.ones((3, 1))), [1.0])
    with pytest.raises(NotPositiveSemidefiniteError, match="input_kernel = Pairwise"):
        RidgePath(Pairwise(lambda a, b: -float(a @ b))).fit(X)


@pytest.mark.parametrize("alpha", [-1, 0, np.nan, np.inf, "x", None])
@pytest.mark.parametrize("landmarks", [False, True])
def test_a_ridge_that_is_not_positive_is_rejected(alpha, landmarks):
    path = RidgePath(Linear()).fit(np.eye(3))
    if landmarks:
        path = NystromPath(Linear(), Landmarks(2)).fit(np.eye(3), [np.eye(3)])
    calls = [path.inverse, path.moment_weights]
    calls += [] if landmarks else [path.shrinkage, lambda alpha: path.solve(np.eye(3), alpha)]
    for call in calls:
        with pytest.raises(ValueError, match="alpha must be a finite number > 0"):
            call(alpha)


@pytest.mark.parametrize("wrong", [None, 3, [[1.0]], [["a"]] * 3, np.eye(3)[:2]], ids=repr)
def test_wrong_columns_are_named(wrong):
    path = RidgePath(Linear()).fit(np.eye(3))
    for call, name in ((path.solve, "V"), (path.leave_one_out_residuals, "rotated")):
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            call(wrong, 0.1)
    with pytest.raises((TypeError, ValueError), match=r"\bV\b"):
        path.leave_one_out(wrong, [0.1])
    with pytest.raises((TypeError, ValueError), match="alphas"):
        path.leave_one_out(np.eye(3), 0.1)
    with pytest.raises((TypeError, ValueError), match="X"):
        path.rotated(np.eye(2))


def test_a_failed_fit_keeps_the_path():
    path = RidgePath(Linear()).fit(np.eye(3))
    with pytest.raises(ValueError, match="X"):
        path.fit(np.full((2, 2), np.nan))
    assert len(path.X_fit_) == len(path.spectrum_) == 3
