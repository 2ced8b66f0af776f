import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

from psilearn.kernels import Gaussian, Pairwise
from psilearn.linalg import NotPositiveSemidefiniteError
from psilearn.regress import KernelRidge

RNG = np.random.default_rng(0)
X, X_NEW, V = RNG.standard_normal((25, 3)), RNG.standard_normal((7, 3)), RNG.standard_normal((25, 4))


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
def test_solve_smooth_and_weights_are_one_regression(alpha):
    kernel = Gaussian(0.4)
    ridge = KernelRidge(kernel, alpha).fit(X)
    W = np.linalg.inv(kernel(X) + 25 * alpha * np.eye(25))
    np.testing.assert_allclose(ridge.solve(V), W @ V, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ridge.regress(V).moment.parts[0][0], kernel(X) @ W @ V, atol=1e-8)
    np.testing.assert_allclose(ridge.weights(X_NEW) @ V, kernel(X_NEW, X) @ ridge.solve(V), atol=1e-8)
    np.testing.assert_allclose(ridge.weights(X) @ V, ridge.regress(V).moment.parts[0][0], atol=1e-8)


def test_the_ridge_is_n_times_lambda():
    ours = KernelRidge(Gaussian(0.4), 1e-3).fit(X)
    theirs = SklearnKernelRidge(alpha=25 * 1e-3, kernel="rbf", gamma=0.4).fit(X, V)
    np.testing.assert_allclose(ours.weights(X_NEW) @ V, theirs.predict(X_NEW), atol=1e-9)


def test_indefinite_input_kernel_is_named():
    with pytest.raises(NotPositiveSemidefiniteError, match=r"input_kernel = Pairwise.* is not positive semi-definite"):
        KernelRidge(Pairwise(lambda a, b: -float(a @ b)), 1e-3).fit(X)
