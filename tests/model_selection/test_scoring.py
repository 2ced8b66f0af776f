"""Scores by name, by function and by scikit-learn's scorers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import fbeta_score, get_scorer, make_scorer

from psilearn import IOKRCV, OELCV
from psilearn._utils.samples import take
from psilearn.decoding import PerExampleCandidates
from psilearn.kernels import Dice
from psilearn.metrics import f1_score
from tests.model_selection.refits import ALPHAS, CV, KERNELS_X, SIZES, closed_form, f1, minus_loss, scores, top_2
from tests.problems import make

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning",
    "ignore:The best:UserWarning",
    "ignore:n_components=:UserWarning",
)


def test_a_function_scores():
    problem = make("tags")
    search = OELCV(
        KERNELS_X,
        Dice(),
        alphas=ALPHAS,
        n_components=SIZES,
        supervisions=[0.5],
        cv=CV,
        scoring=lambda y, p: float(f1_score(y, p)),
    )
    named = clone(search).set_params(scoring="f1")
    np.testing.assert_array_equal(scores(search.fit(problem.X, problem.Y)), scores(named.fit(problem.X, problem.Y)))


@pytest.mark.usefixtures("backend")
def test_kendall_and_hamming():
    rankings, tags = make("rankings"), make("tags")
    tau = IOKRCV(KERNELS_X, rankings.kernel, alphas=ALPHAS, cv=CV, scoring="kendall_tau").fit(rankings.X, rankings.Y)
    loss = IOKRCV(KERNELS_X, rankings.kernel, alphas=ALPHAS, cv=CV, scoring="loss").fit(rankings.X, rankings.Y)
    np.testing.assert_allclose(scores(loss), 2 * scores(tau) - 2, atol=1e-9)  # |ψ − ψ'|² = 2 − 2τ
    assert (IOKRCV(KERNELS_X, Dice(), alphas=ALPHAS, cv=CV, scoring="hamming").fit(tags.X, tags.Y).best_score_) <= 0


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("own_sets", [False, True])
@pytest.mark.parametrize("unlabeled", [False, True])
def test_several_scorings_at_once_are_one_search_each(own_sets, unlabeled):
    problem = make("tags")
    names = ["f1", "mse", "top_2", "loss", "hamming"]
    sets = (
        PerExampleCandidates([take(problem.Y, slice(i % 3, 12)) for i in range(len(problem.X))]) if own_sets else None
    )
    data = {"unlabeled": problem.unlabeled if unlabeled else None, "candidates": sets}
    search = OELCV(
        KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, supervisions=[0.3, 1.0], cv=CV, scoring=names
    )
    search.fit(problem.X, problem.Y, **data)
    for name in names:
        alone = clone(search).set_params(scoring=name).fit(problem.X, problem.Y, **data)
        for part in ("mean", "std", "split0", "split1"):
            together = search.cv_results_[f"{part}_test_{name}"]
            np.testing.assert_allclose(together, alone.cv_results_[f"{part}_test_score"], atol=1e-12)
        assert search.best_where(scoring=name).index == alone.best_index_
        assert search.best_where(scoring=name, supervision=1.0).index == alone.best_where(supervision=1.0).index
    assert search.best_index_ == search.best_where(scoring="f1").index, "the first chooses"
    with pytest.raises(ValueError, match="scoring='kendall_tau' was not computed"):
        search.best_where(scoring="kendall_tau")


@pytest.mark.parametrize("scoring", [[], ["f1", "f1"], [["f1"]], {"f1"}, ["f1", None]])
def test_scorings_must_be_known_and_differ(scoring):
    problem = make("tags")
    with pytest.raises(ValueError, match=r"scoring must (have at least one score|be one of)"):
        OELCV(scoring=scoring).fit(problem.X, problem.Y)


def search_of(problem, scoring, **options):
    search = OELCV(KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, supervisions=[0.5], cv=CV)
    return search.set_params(scoring=scoring, **options).fit(problem.X, problem.Y)


def test_metrics_of_label_sets():
    search = search_of(make("tags"), ["subset_accuracy", "jaccard", "f1"])
    exact, jaccard, f1 = (search.cv_results_[f"mean_test_{name}"] for name in ("subset_accuracy", "jaccard", "f1"))
    assert np.all(exact <= jaccard + 1e-12) and np.all(jaccard <= f1 + 1e-12) and np.any(exact < f1)


@pytest.mark.parametrize("kind", ["tags", "sparse tags"])
def test_scikit_learn_scorers_are_their_metrics(kind):
    problem = make(kind)
    weighted = make_scorer(fbeta_score, beta=2.0, average="samples", zero_division=1.0)
    loss = make_scorer(hamming, greater_is_better=False)
    search = search_of(problem, [weighted, loss, "f1_samples", "f1", "accuracy", "subset_accuracy"])
    results = {name.removeprefix("mean_test_"): v for name, v in search.cv_results_.items() if "mean_test" in name}
    np.testing.assert_allclose(results["f1_samples"], results["f1"], atol=0.2)  # two empty sets count 0 and 1
    np.testing.assert_allclose(results["accuracy"], results["subset_accuracy"])
    np.testing.assert_allclose(results["hamming"], search_of(problem, "hamming").cv_results_["mean_test_score"])
    by_function = search_of(problem, lambda y, p: fbeta_score(y, p, beta=2.0, average="samples", zero_division=1.0))
    np.testing.assert_allclose(results["fbeta_score"], by_function.cv_results_["mean_test_score"])


def hamming(y_true, y_pred):
    return abs(y_true - y_pred).sum() / (y_true.shape[0] * y_true.shape[1])


@pytest.mark.parametrize("scoring", ["roc_auc", make_scorer(fbeta_score, response_method="predict_proba", beta=1.0)])
def test_scorers_that_need_more_than_predictions_are_rejected(scoring):
    problem = make("tags")
    with pytest.raises(ValueError, match=r"is based on .*predict_proba.*based on predictions"):
        OELCV(scoring=scoring).fit(problem.X, problem.Y)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", ["mse", "loss", "f1", "top_2", "f1_samples"])
def test_score_is_the_first_scoring_of_the_best_estimator(name):
    problem = make("tags")
    X, y = problem.X[:20], take(problem.Y, slice(0, 20))
    search = search_of(problem, [name, "hamming"])
    model, candidates = search.best_estimator_, problem.candidates
    expected = {
        "mse": closed_form(model, X, y, None),
        "loss": minus_loss(model, X, y, candidates),
        "f1": f1(model, X, y, candidates),
        "top_2": top_2(model, X, y, candidates),
        "f1_samples": get_scorer("f1_samples")(model, X, y),
    }[name]
    given = None if name in ("mse", "f1_samples") else candidates
    assert search.score(X, y, given) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"20|19"):
        search.score(X, y[:19])
