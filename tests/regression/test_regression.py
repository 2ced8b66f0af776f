import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

from psilearn._backend import to_numpy
from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn.kernels import Gaussian, Pairwise
from psilearn.regression import KernelRidge
from tests.problems import asarray, block

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X, X_NEW, V = RNG.standard_normal((25, 3)), RNG.standard_normal((7, 3)), RNG.standard_normal((25, 4))


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
def test_solve_smooth_and_weights_are_one_regression(alpha):
    kernel = Gaussian(0.4)
    ridge = KernelRidge(kernel, alpha).fit(X)
    K, K_new = block(kernel, X), block(kernel, X_NEW, X)
    W = np.linalg.inv(K + 25 * alpha * np.eye(25))
    solution, smoothed = to_numpy(ridge.solve(asarray(V))), to_numpy(ridge.regress(asarray(V)).moment.parts[0][0])
    np.testing.assert_allclose(solution, W @ V, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(smoothed, K @ W @ V, atol=1e-8)
    np.testing.assert_allclose(to_numpy(ridge.weights(X_NEW)) @ V, K_new @ solution, atol=1e-8)
    np.testing.assert_allclose(to_numpy(ridge.weights(X)) @ V, smoothed, atol=1e-8)


def test_the_ridge_is_n_times_lambda():
    ours = KernelRidge(Gaussian(0.4), 1e-3).fit(X)
    theirs = SklearnKernelRidge(alpha=25 * 1e-3, kernel="rbf", gamma=0.4).fit(X, V)
    np.testing.assert_allclose(to_numpy(ours.weights(X_NEW)) @ V, theirs.predict(X_NEW), atol=1e-9)


def test_indefinite_input_kernel_is_named():
    with pytest.raises(NotPositiveSemidefiniteError, match=r"input_kernel = Pairwise.* is not positive semi-definite"):
        KernelRidge(Pairwise(lambda a, b: -float(a @ b)), 1e-3).fit(X)
