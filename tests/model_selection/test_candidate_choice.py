"""Searches that choose among known, near and all label sets, against models that are fitted again."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from psilearn import IOKR, IOKRCV, KDECV, OEL, OELCV
from psilearn.decoding import AllLabelSets, NearLabelSets
from psilearn.kernels import Dice, Gaussian, Kemeny
from psilearn.metrics import f1_score

NAMES = ["known", "near", "all"]
SPLITS = ShuffleSplit(2, test_size=0.3, random_state=0)

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components:UserWarning")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    Y = (X @ rng.standard_normal((4, 7)) + 0.5 * rng.standard_normal((60, 7)) > 0.5).astype(int)
    return X, Y


def test_scores_are_those_of_models_that_are_fitted_again(data):
    X, Y = data
    search = OELCV(
        Gaussian(0.3), Dice(), alphas=[1e-3, 1e-1], n_components=[2, 6], supervisions=[0.0, 0.5],
        cv=SPLITS, scoring=["f1", "mse"], candidates=NAMES,
    ).fit(X, Y)  # fmt: skip
    results = search.cv_results_
    assert len(results["params"]) == 2 * 2 * 2 * 3
    assert search.grid_["candidates"] == NAMES
    for i, params in enumerate(results["params"]):
        params = dict(params)
        name = params.pop("candidates")
        for j, (train, held) in enumerate(SPLITS.split(X)):
            model = OEL(**params).fit(X[train], Y[train])
            expected = float(f1_score(Y[held], model.predict(X[held], name)))
            assert results[f"split{j}_test_f1"][i] == pytest.approx(expected, abs=1e-9)
    errors = results["mean_test_mse"].reshape(-1, 3)
    np.testing.assert_array_equal(errors[:, 1:], errors[:, :1].repeat(2, axis=1))  # they do not depend on candidates


@pytest.mark.parametrize("search", [IOKRCV, KDECV, OELCV])
def test_predictions_use_the_chosen_candidates(search, data):
    X, Y = data
    fitted = search(Gaussian(0.3), Dice(), alphas=1e-1, cv=SPLITS, scoring="f1", candidates=NAMES).fit(X, Y)
    chosen = fitted.best_params_["candidates"]
    assert chosen == max(NAMES, key=lambda name: fitted.best_where(candidates=name).score)
    np.testing.assert_array_equal(fitted.predict(X), fitted.best_estimator_.predict(X, chosen))
    np.testing.assert_array_equal(fitted.predict(X, "known"), fitted.best_estimator_.predict(X))
    only = clone(fitted).set_params(candidates="all", scoring="mse").fit(X, Y)
    assert only.best_params_["candidates"] == "all"
    np.testing.assert_array_equal(only.predict(X), only.best_estimator_.predict(X, "all"))
    assert only.predict_topk(X[:3], 200).indices.shape == (3, 128)


def test_a_rule_for_one_fit_is_that_of_the_parameter(data):
    X, Y = data
    search = IOKRCV(Gaussian(0.3), Dice(), alphas=[1e-2, 1.0], cv=SPLITS, scoring="f1")
    by_name = search.fit(X, Y, candidates="all").cv_results_["mean_test_score"]
    expected = clone(search).set_params(candidates="all").fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(by_name, expected)
    assert search.best_params_["candidates"] == "all"
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X, "all"))


def test_objects_are_rules_too(data):
    X, Y = data
    rules = ["all", AllLabelSets(min_labels=1, max_labels=2), NearLabelSets()]
    search = IOKRCV(Gaussian(0.3), Dice(), alphas=[1e-2, 1.0], cv=SPLITS, scoring="f1", candidates=rules).fit(X, Y)
    train, held = next(SPLITS.split(X))
    for rule in rules:
        model = IOKR(Gaussian(0.3), Dice(), alpha=1e-2).fit(X[train], Y[train])
        settings = [(params["alpha"], params["candidates"]) for params in search.cv_results_["params"]]
        i = settings.index((1e-2, rule))
        expected = float(f1_score(Y[held], model.predict(X[held], rule)))
        assert search.cv_results_["split0_test_score"][i] == pytest.approx(expected, abs=1e-9)
    only = clone(search).set_params(candidates=rules[1]).fit(X, Y)
    assert set(only.predict(X).sum(axis=1)) <= {1, 2}
    with pytest.raises(ValueError, match="needs candidates"):
        clone(search).set_params(candidates=NearLabelSets(), cv="loo").fit(X, Y)


def test_leaving_one_out_decodes_to_all_sets_only(data):
    X, Y = data
    search = IOKRCV(Gaussian(0.3), Dice(), alphas=[1e-2], cv="loo", scoring="f1", candidates="all")
    score = search.fit(X, Y).best_score_
    model = IOKR(Gaussian(0.3), Dice(), alpha=1e-2 * 60 / 59)
    left_out = [model.fit(np.delete(X, i, 0), np.delete(Y, i, 0)).predict(X[i : i + 1], "all") for i in range(60)]
    assert score == pytest.approx(float(f1_score(Y, np.concatenate(left_out))), abs=1e-9)
    for name in ("known", "near"):
        with pytest.raises(ValueError, match='cv="loo" with a decoded scoring needs candidates'):
            clone(search).set_params(candidates=name).fit(X, Y)


def test_all_rankings_and_known_rankings_are_a_choice():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3))
    ranks = np.argsort(np.argsort(X @ rng.standard_normal((3, 4)), axis=1), axis=1) + 1
    search = IOKRCV(Gaussian(0.3), Kemeny(), alphas=1e-2, cv=SPLITS, scoring="kendall_tau", candidates=["known", "all"])
    search.fit(X, ranks)
    default = clone(search).set_params(candidates=None).fit(X, ranks)
    assert search.best_where(candidates="all").score == default.best_score_


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates": "every"}, "one or several of 'known', 'near', 'all' or objects such as .* got 'every'"),
        ({"candidates": ["all", "all"]}, "contains a name twice"),
        ({"scoring": "mse"}, "cannot be compared without decoding: choose a decoded metric"),
        (
            {"output_kernels": [Dice(), Gaussian(1.0)]},
            "but not with Gaussian",
        ),
        ({"scoring": "top_1"}, "are too many sets to list"),
    ],
)
def test_choices_that_are_impossible_raise(changes, message):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 2)), (rng.random((30, 20)) < 0.2).astype(int)
    search = IOKRCV(Gaussian(0.3), Dice(), alphas=1e-2, cv=SPLITS, scoring="f1", candidates=["known", "all"])
    with pytest.raises(ValueError, match=message):
        search.set_params(**changes).fit(X, Y)


def test_a_choice_and_candidates_of_a_fit_exclude_each_other(data):
    X, Y = data
    with pytest.raises(ValueError, match=r"The search chooses among candidates='all': pass no candidates to fit"):
        IOKRCV(Gaussian(0.3), Dice(), scoring="f1", candidates="all").fit(X, Y, candidates=Y)
