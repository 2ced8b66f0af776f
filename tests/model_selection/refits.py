"""Scores of a search by refitting every setting on every split, against which the path is compared."""

from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from psilearn._utils.samples import take
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Gaussian
from psilearn.metrics import f1_score, kernel_loss, top_k_accuracy

KERNELS_X = [Gaussian(0.2), Gaussian(1.0)]
ALPHAS = [1e-4, 1e-2]
SIZES = [1, 2, 4]
SUPERVISIONS = [0.0, 0.3, 0.7, 1.0]
CV = ShuffleSplit(2, test_size=0.25, random_state=0)
GRID = {"alphas": ALPHAS, "n_components": SIZES, "supervisions": SUPERVISIONS, "cv": CV}


def closed_form(model, X, y, candidates):
    """Minus the mean of |G*Gĥ(x) − ψ(y)|², by definition."""
    Z, g = model.embed(X), model.transform_outputs(y)
    return -np.mean((Z**2 - 2 * Z * g).sum(axis=1) + model.output_kernel_.diag(y))


def minus_loss(model, X, y, candidates):
    return -float(kernel_loss(y, model.predict(X, candidates), model.output_kernel_))


def f1(model, X, y, candidates):
    return float(f1_score(y, model.predict(X, candidates)))


def top_2(model, X, y, candidates):
    return float(top_k_accuracy(model.truth_positions(X, y, candidates), 2))


def refit_scores(models, problem, unlabeled, score, candidates=None):
    """Fit every model on every split."""
    return refit_all_scores(models, problem, unlabeled, [score], candidates)[0]


def refit_all_scores(models, problem, unlabeled, score_functions, candidates=None):
    """Fit every model on every split, and score each fit by every function: one array per function."""
    rows = []
    for model, (train, held) in product(models, CV.split(problem.X)):
        model = clone(model).fit(problem.X[train], take(problem.Y, train), unlabeled=unlabeled)
        given = candidates
        if isinstance(candidates, PerExampleCandidates):
            given = PerExampleCandidates([candidates.sets[i] for i in held])
        rows.append([score(model, problem.X[held], take(problem.Y, held), given) for score in score_functions])
    return np.moveaxis(np.reshape(rows, (len(models), -1, len(score_functions))), 2, 0)


def assert_scores_are_those_of_refits(
    searches, models, problem, unlabeled, score_functions, candidates=None, backend="numpy"
):
    """Compare searches of the same settings, one per function, with the models of the settings fitted on each split.

    On another backend than NumPy every fifth of many settings is compared, which meets every value of each parameter.
    """
    some = slice(None, None, 1 if backend == "numpy" or len(models) < 10 else 5)
    expected = refit_all_scores(models[some], problem, unlabeled, score_functions, candidates)
    for search, refits in zip(searches, expected, strict=True):
        assert str(search.cv_results_["params"]) == str(searches[0].cv_results_["params"])
        np.testing.assert_allclose(scores(search)[some], refits, atol=1e-7)


def scores(search):
    return np.column_stack([search.cv_results_[f"split{j}_test_score"] for j in range(2)])
