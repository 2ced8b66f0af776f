"""Searches in the span of output landmarks: the scores of refits with the same landmarks."""

import numpy as np
import pytest
from sklearn.base import clone

from psilearn import KDE, KDECV, OEL, OELCV, Landmarks
from psilearn._utils.samples import n_samples
from tests.model_selection.refits import (
    ALPHAS,
    CV,
    GRID,
    KERNELS_X,
    SIZES,
    assert_scores_are_those_of_refits,
    closed_form,
    minus_loss,
    refit_scores,
    scores,
)
from tests.problems import make

pytestmark = [
    pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning"),
    pytest.mark.usefixtures("backend"),
]


@pytest.mark.parametrize("with_unlabeled", [True, False])
@pytest.mark.parametrize("landmarks", [8, Landmarks(35, "labeled"), Landmarks(9, "kmeans++")], ids=str)
@pytest.mark.parametrize("kind", ["vectors", "tags", "strings"])
def test_scores_are_those_of_refits(kind, with_unlabeled, landmarks, backend):
    problem = make(kind)
    U = problem.unlabeled if with_unlabeled else None
    searches = [
        OELCV(KERNELS_X[0], problem.kernel, **GRID, output_landmarks=landmarks, scoring=name).fit(
            problem.X, problem.Y, U
        )
        for name in ("mse", "loss")
    ]
    models = [OEL(**params, output_landmarks=landmarks) for params in searches[0].cv_results_["params"]]
    assert_scores_are_those_of_refits(searches, models, problem, U, [closed_form, minus_loss], backend=backend)
    for search in searches:
        assert search.best_estimator_.output_landmarks is landmarks
        assert search.ranks_[0] <= (landmarks.n if isinstance(landmarks, Landmarks) else landmarks)


def test_kde_scores_are_those_of_refits():
    problem = make("vectors")
    search = KDECV(KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, cv=CV, output_landmarks=8)
    search.fit(problem.X, problem.Y, problem.unlabeled)
    models = [KDE(**params, output_landmarks=8) for params in search.cv_results_["params"]]
    expected = refit_scores(models, problem, problem.unlabeled, closed_form)
    np.testing.assert_allclose(scores(search), expected, atol=1e-7)


@pytest.mark.parametrize("name", ["mse", "loss", "top_2"])
def test_all_landmarks_are_exact(problem, name):
    search = OELCV(KERNELS_X, problem.kernel, **GRID, scoring=name)
    data = problem.X, problem.Y, problem.unlabeled
    everything = n_samples(problem.Y) + n_samples(problem.unlabeled)
    exact, landmarks = clone(search).fit(*data), clone(search).set_params(output_landmarks=everything).fit(*data)
    np.testing.assert_allclose(scores(landmarks), scores(exact), atol=1e-6)


@pytest.mark.parametrize("form", ["array", "path", "memory map", "iterator"])
def test_unlabeled_outputs_are_read_in_every_split(form, tmp_path):
    problem = make("vectors")
    np.save(tmp_path / "unlabeled.npy", problem.unlabeled)

    def unlabeled():
        return {
            "array": problem.unlabeled,
            "path": tmp_path / "unlabeled.npy",
            "memory map": np.load(tmp_path / "unlabeled.npy", mmap_mode="r"),
            "iterator": iter([problem.unlabeled]),
        }[form]

    search = OELCV(KERNELS_X[0], problem.kernel, **GRID, output_landmarks=10, scoring="loss")
    search.fit(problem.X, problem.Y, unlabeled())
    model = clone(search.best_estimator_).fit(problem.X, problem.Y, unlabeled())
    assert len(search.best_estimator_.candidates_) == len(model.candidates_) == (50 if form == "array" else 20)
    np.testing.assert_allclose(search.embed(problem.X_test), model.embed(problem.X_test))
    fits = []
    for train, held in CV.split(problem.X):
        split = OEL(**search.cv_results_["params"][5], output_landmarks=10)
        split.fit(problem.X[train], problem.Y[train], unlabeled())
        fits.append(minus_loss(split, problem.X[held], problem.Y[held], None))
    np.testing.assert_allclose(scores(search)[5], fits, atol=1e-7)


def test_default_sizes_and_several_processes(backend):
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, alphas=ALPHAS, supervisions=[0.5], cv=CV, output_landmarks=10)
    search.fit(problem.X, problem.Y, problem.unlabeled)
    assert max(search.grid_["n_components"]) == 10
    if backend == "numpy":
        parallel = clone(search).set_params(n_jobs=2).fit(problem.X, problem.Y, problem.unlabeled)
        np.testing.assert_allclose(scores(parallel), scores(search), atol=1e-9)
