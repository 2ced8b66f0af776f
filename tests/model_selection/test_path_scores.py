"""The scores of a search are those of fitting every setting on every split."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Dice, Gaussian, Linear, Tanimoto
from psilearn.regression import RidgePath
from tests.model_selection.refits import (
    ALPHAS,
    CV,
    GRID,
    KERNELS_X,
    SIZES,
    SUPERVISIONS,
    assert_scores_are_those_of_refits,
    closed_form,
    f1,
    minus_loss,
    refit_scores,
    scores,
    top_2,
)
from tests.problems import make

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning")


@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_oelcv_scores_are_those_of_refits(problem, with_unlabeled, backend):
    U = problem.unlabeled if with_unlabeled else None
    searches = [
        OELCV(KERNELS_X, problem.kernel, **GRID, scoring=name).fit(problem.X, problem.Y, unlabeled=U)
        for name in ("mse", "loss")
    ]
    models = [OEL(**params) for params in searches[0].cv_results_["params"]]
    assert len(models) == 2 * 2 * 3 * 4
    assert_scores_are_those_of_refits(searches, models, problem, U, [closed_form, minus_loss], backend=backend)


def test_iokrcv_and_kdecv_scores_are_those_of_refits(problem, backend):
    U = problem.unlabeled
    for search, Estimator in (
        (IOKRCV(KERNELS_X, problem.kernel, alphas=ALPHAS, cv=CV), IOKR),
        (KDECV(KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, cv=CV), KDE),
    ):
        searches = [
            clone(search).set_params(scoring=name).fit(problem.X, problem.Y, unlabeled=U)
            for name in ("mse", "loss", "top_2")
        ]
        models = [Estimator(**params) for params in searches[0].cv_results_["params"]]
        functions = [closed_form, minus_loss, top_2]
        assert_scores_are_those_of_refits(searches, models, problem, U, functions, backend=backend)
        assert all(type(search.best_estimator_) is Estimator for search in searches)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("supervisions", [[1.0], [0.0], [0.4]])
def test_single_supervisions(problem, supervisions):
    search = OELCV(KERNELS_X[0], problem.kernel, alphas=ALPHAS, n_components=SIZES, supervisions=supervisions, cv=CV)
    search.fit(problem.X, problem.Y, unlabeled=problem.unlabeled)
    models = [OEL(**params) for params in search.cv_results_["params"]]
    np.testing.assert_allclose(scores(search), refit_scores(models, problem, problem.unlabeled, closed_form), atol=1e-7)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("own_sets", [False, True])
def test_decoding_to_given_candidates(own_sets):
    problem = make("tags")
    candidates = np.unique(np.vstack([problem.Y, problem.candidates]), axis=0)
    if own_sets:
        rng = np.random.default_rng(0)
        candidates = PerExampleCandidates(
            [np.vstack([y[None], candidates[rng.permutation(len(candidates))[:6]]]) for y in problem.Y]
        )
    searches = [
        OELCV(KERNELS_X, Dice(), **GRID, scoring=name).fit(
            problem.X, problem.Y, problem.unlabeled, candidates=candidates
        )
        for name in ("f1", "top_2", "loss")
    ]
    models = [OEL(**params) for params in searches[0].cv_results_["params"]]
    assert_scores_are_those_of_refits(searches, models, problem, problem.unlabeled, [f1, top_2, minus_loss], candidates)


@pytest.mark.usefixtures("backend")
def test_several_output_kernels_by_a_decoded_metric():
    problem = make("sparse tags")
    search = OELCV(
        KERNELS_X[0], [Dice(), Tanimoto()], alphas=ALPHAS, n_components=SIZES, supervisions=[0.5], cv=CV, scoring="f1"
    )
    search.fit(problem.X, problem.Y)
    models = [OEL(**params) for params in search.cv_results_["params"]]
    assert {type(model.output_kernel) for model in models} == {Dice, Tanimoto}
    np.testing.assert_allclose(scores(search), refit_scores(models, problem, None, f1), atol=1e-9)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_output_kernels_together_are_output_kernels_apart(n_jobs):
    problem = make("tags")
    search = OELCV(
        KERNELS_X,
        [Dice(), Gaussian(0.5)],
        alphas=ALPHAS,
        n_components=SIZES,
        supervisions=SUPERVISIONS,
        cv=CV,
        scoring="f1",
        n_jobs=n_jobs,
    )
    search.fit(problem.X, problem.Y, problem.unlabeled)
    apart = [
        clone(search).set_params(output_kernels=k, input_kernels=kx).fit(problem.X, problem.Y, problem.unlabeled)
        for k, kx in product(search.output_kernels, search.input_kernels)
    ]
    np.testing.assert_allclose(scores(search), np.vstack([scores(one) for one in apart]), atol=1e-12)
    assert list(map(str, search.cv_results_["params"])) == [str(p) for one in apart for p in one.cv_results_["params"]]


@pytest.mark.usefixtures("backend")
def test_k_x_is_decomposed_once_for_all_output_kernels(monkeypatch):
    problem, calls = make("tags"), []
    fit = RidgePath.fit
    monkeypatch.setattr(RidgePath, "fit", lambda self, X: calls.append(1) or fit(self, X))
    IOKRCV(KERNELS_X, [Dice(), Tanimoto()], alphas=ALPHAS, cv=CV, scoring="f1").fit(problem.X, problem.Y)
    assert len(calls) == 2 * 2  # input kernels and splits


@pytest.mark.usefixtures("backend")
def test_iterated_path_agrees_with_the_dense_one(monkeypatch):
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((60, 3)), rng.standard_normal((150, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], rng.standard_normal(60)])
    search = OELCV(
        KERNELS_X, Gaussian(0.7), alphas=[1e-5, 1e-3, 1e-1], n_components=[1, 3, 5], supervisions=SUPERVISIONS, cv=CV
    )
    dense = scores(clone(search).fit(X, Y, U))
    monkeypatch.setattr("psilearn.embedding.subspace_path.MAX_DENSE_ORDER", 10)
    np.testing.assert_allclose(scores(clone(search).fit(X, Y, U)), dense, atol=1e-6)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("k", [5, 30])
def test_iterated_path_where_few_directions_are_there_to_find(monkeypatch, k):
    # Classes as one-hot rows: the moment has many equal eigenvalues and the labeled outputs fill a few axes.
    rng = np.random.default_rng(0)
    classes = np.eye(400)
    Y, U = classes[rng.integers(0, 40, 60)], classes[rng.integers(0, 400, 900) % rng.integers(1, 400, 900)]
    X = rng.standard_normal((60, 3))
    search = OELCV(KERNELS_X[0], Linear(), alphas=ALPHAS, n_components=[2, k], supervisions=[0.3, 0.7], cv=CV)
    dense = scores(clone(search).fit(X, Y, U))
    monkeypatch.setattr("psilearn.embedding.subspace_path.MAX_DENSE_ORDER", 10)
    np.testing.assert_allclose(scores(clone(search).fit(X, Y, U)), dense, atol=1e-5)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("own_sets", [False, True])
def test_single_precision_decodes_to_the_same_candidates(own_sets):
    problem = make("vectors")
    sets = PerExampleCandidates([problem.Y[i % 3 :: 3] for i in range(len(problem.X))]) if own_sets else None
    search = OELCV(KERNELS_X, problem.kernel, **GRID, scoring=["loss", "mse"])
    double = clone(search).fit(problem.X, problem.Y, problem.unlabeled, sets)
    single = clone(search).set_params(dtype="float32").fit(problem.X, problem.Y, problem.unlabeled, sets)
    np.testing.assert_array_equal(single.cv_results_["mean_test_mse"], double.cv_results_["mean_test_mse"])
    np.testing.assert_allclose(scores(single), scores(double), atol=1e-6)
    assert single.best_estimator_.dtype == "float32"
    with pytest.raises(ValueError, match="dtype must be"):
        clone(search).set_params(dtype="float16").fit(problem.X, problem.Y)
