"""One decomposition for every λ against a Nyström ridge regression for each."""

import numpy as np
import pytest
import sklearn

from psilearn import Landmarks
from psilearn._backend import current_compute, to_numpy
from psilearn.kernels import Gaussian
from psilearn.regression import NystromPath, NystromRidge, RidgePath

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((70, 3)), RNG.standard_normal((9, 3))
TARGETS = [RNG.standard_normal((70, 4)), RNG.standard_normal((70, 2))]
ALPHAS = [1e-6, 1e-3, 1.0]


@pytest.mark.parametrize("method", ["uniform", "leverage"])
@pytest.mark.parametrize("working_memory", [1024, 1e-3])
def test_predictions_and_moments_are_those_of_each_ridge(method, working_memory):
    landmarks, compute = Landmarks(15, method), current_compute()
    with sklearn.config_context(working_memory=working_memory):
        path = NystromPath(Gaussian(0.3), landmarks, 1e-3, compute).fit(X, [compute.asarray(V) for V in TARGETS])
        rotated = path.rotated(NEW)
    for alpha in ALPHAS if method == "uniform" else [1e-3]:
        for V, B in zip(TARGETS, path.targets_, strict=True):
            ridge = NystromRidge(Gaussian(0.3), alpha, landmarks, compute).fit(X).regress(compute.asarray(V))
            predicted = to_numpy(rotated @ (path.inverse(alpha)[:, None] * B))
            np.testing.assert_allclose(predicted, to_numpy(ridge.predict(NEW)), atol=1e-8)
            moment = to_numpy((B.T * path.moment_weights(alpha)) @ B)
            np.testing.assert_allclose(moment, to_numpy(ridge.moment.to_matrix()), atol=1e-8)


def test_all_rows_as_landmarks_are_the_exact_path():
    compute = current_compute()
    V = compute.asarray(TARGETS[0])
    path, exact = NystromPath(Gaussian(0.3), Landmarks(70)).fit(X, [V]), RidgePath(Gaussian(0.3)).fit(X)
    np.testing.assert_allclose(to_numpy(path.spectrum_), to_numpy(exact.spectrum_), atol=1e-10)
    B, exact_B = path.targets_[0], exact.vectors_.T @ V
    for alpha in ALPHAS[1:]:
        predicted = path.rotated(NEW) @ (path.inverse(alpha)[:, None] * B)
        expected = exact.rotated(NEW) @ (exact.inverse(alpha)[:, None] * exact_B)
        np.testing.assert_allclose(to_numpy(predicted), to_numpy(expected), atol=1e-8)
        moments = (B.T * path.moment_weights(alpha)) @ B, (exact_B.T * exact.moment_weights(alpha)) @ exact_B
        np.testing.assert_allclose(*map(to_numpy, moments), atol=1e-9)
