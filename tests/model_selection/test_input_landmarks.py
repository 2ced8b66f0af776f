"""Searches in the span of input landmarks: the scores of refits with the same landmarks."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV, Landmarks
from psilearn._backend import to_numpy
from psilearn.kernels import Dice, Gaussian
from psilearn.model_selection import regression_routes
from psilearn.regression import RidgePath
from tests.model_selection.refits import (
    ALPHAS,
    CV,
    GRID,
    KERNELS_X,
    SIZES,
    closed_form,
    f1,
    minus_loss,
    refit_scores,
    scores,
)
from tests.problems import make

pytestmark = [
    pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning"),
    pytest.mark.usefixtures("backend"),
]
BOTH = {"input_landmarks": 11, "output_landmarks": 8}


@pytest.mark.parametrize(
    "landmarks", [BOTH, {"input_landmarks": Landmarks(9, "kmeans++")}, {"input_landmarks": Landmarks(9, "pivoted")}]
)
@pytest.mark.parametrize(("name", "score"), [("mse", closed_form), ("loss", minus_loss)])
def test_scores_are_those_of_refits(name, score, landmarks):
    problem = make("tags")
    search = OELCV(KERNELS_X, problem.kernel, **GRID, scoring=name, **landmarks).fit(problem.X, problem.Y)
    models = [OEL(**params, **landmarks) for params in search.cv_results_["params"]][::5]
    np.testing.assert_allclose(scores(search)[::5], refit_scores(models, problem, None, score), atol=1e-7)
    assert search.best_estimator_.input_landmarks is landmarks["input_landmarks"]
    assert search.best_estimator_.output_landmarks is landmarks.get("output_landmarks")


@pytest.mark.parametrize("landmarks", [BOTH, {"input_landmarks": 7}, {"output_landmarks": 7}], ids=str)
def test_iokr_and_kde_scores_are_those_of_refits(landmarks):
    problem = make("vectors")
    for search, Estimator in (
        (IOKRCV(KERNELS_X, problem.kernel, alphas=ALPHAS, cv=CV, **landmarks), IOKR),
        (KDECV(KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, cv=CV, **landmarks), KDE),
    ):
        search.fit(problem.X, problem.Y, problem.unlabeled)
        models = [Estimator(**params, **landmarks) for params in search.cv_results_["params"]]
        expected = refit_scores(models, problem, problem.unlabeled, closed_form)
        np.testing.assert_allclose(scores(search), expected, atol=1e-7)


def test_several_output_kernels_share_one_pass(monkeypatch):
    problem, calls = make("sparse tags"), []
    fit = regression_routes.NystromPath.fit
    monkeypatch.setattr(regression_routes.NystromPath, "fit", lambda self, *a: calls.append(1) or fit(self, *a))
    monkeypatch.setattr(RidgePath, "fit", lambda *_: pytest.fail("K_x is never formed"))
    search = OELCV(KERNELS_X, [Dice(), Gaussian(0.5)], **GRID, scoring="f1", **BOTH).fit(problem.X, problem.Y)
    assert len(calls) == 2 * 2  # input kernels and splits
    models = [OEL(**params, **BOTH) for params in search.cv_results_["params"]][::7]
    np.testing.assert_allclose(scores(search)[::7], refit_scores(models, problem, None, f1), atol=1e-9)


@pytest.mark.parametrize("options", [{"scoring": "mse"}, {"scoring": "loss"}, {"cv": "loo"}], ids=str)
@pytest.mark.parametrize("kind", ["vectors", "sparse tags", "strings"])
def test_all_rows_as_landmarks_are_exact(kind, options):
    problem = make(kind)
    search = OELCV(KERNELS_X, problem.kernel, **GRID).set_params(**options)
    exact = clone(search).fit(problem.X, problem.Y)
    landmarks = clone(search).set_params(input_landmarks=1000).fit(problem.X, problem.Y)
    name = "mean_test_score"
    np.testing.assert_allclose(landmarks.cv_results_[name], exact.cv_results_[name], atol=1e-6)
    assert landmarks.best_index_ == exact.best_index_


def test_leave_one_out_is_leaving_each_example_out_with_the_same_landmarks(monkeypatch):
    """Ridge regression on the features of fixed landmarks, solved again without each example."""
    problem, alpha, S = make("vectors"), 1e-2, np.arange(0, 30, 4)
    X, Y, n = problem.X, problem.Y, len(problem.X)
    monkeypatch.setattr(Landmarks, "choose", lambda self, kernel, A, **_: S)
    kernel = Gaussian(0.2)
    search = IOKRCV(kernel, Gaussian(0.7), alphas=alpha, cv="loo", input_landmarks=len(S), refit=False).fit(X, Y)
    L = np.linalg.cholesky(to_numpy(kernel(X[S])))
    phi, errors = np.linalg.solve(L, to_numpy(kernel(X[S], X))).T, []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        weights = phi[rest] @ np.linalg.solve(phi[rest].T @ phi[rest] + n * alpha * np.eye(len(S)), phi[i])
        K = to_numpy(Gaussian(0.7)(Y))
        errors.append(K[i, i] - 2 * K[i, rest] @ weights + weights @ K[np.ix_(rest, rest)] @ weights)
    assert search.best_score_ == pytest.approx(-np.mean(errors), rel=1e-9)


def test_inputs_are_read_in_blocks(monkeypatch):
    problem = make("tags")
    search = OELCV(KERNELS_X[:1], problem.kernel, **GRID, **BOTH)
    whole = scores(clone(search).fit(problem.X, problem.Y))
    monkeypatch.setattr("psilearn.regression.nystrom.MAX_REGRESSION_ROWS", 4)
    with sklearn.config_context(working_memory=1e-3):
        np.testing.assert_allclose(scores(clone(search).fit(problem.X, problem.Y)), whole, atol=1e-9)


@pytest.mark.parametrize("value", [0, 2.5, "uniform", Landmarks(5, "labeled")])
def test_bad_landmarks_are_rejected(value):
    problem = make("tags")
    with pytest.raises((TypeError, ValueError), match="input_landmarks"):
        IOKRCV(input_landmarks=value).fit(problem.X, problem.Y)
