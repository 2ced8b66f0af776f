"""What a search does with its scores: the table, the choice, the refit, and scikit-learn's contract."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import IOKR, IOKRCV, KDECV, OEL, OELCV
from psilearn.kernels import Aligned, Dice, Gaussian, Kemeny, Linear
from tests.model_selection.refits import (
    ALPHAS,
    CV,
    GRID,
    KERNELS_X,
    SIZES,
    closed_form,
    refit_scores,
    scores,
)
from tests.problems import make

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning")


def test_results_are_a_table(pd):
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, **GRID).fit(problem.X, problem.Y)
    table = pd.DataFrame(search.cv_results_)
    assert len(table) == 48
    best = table.loc[search.best_index_]
    assert best["rank_test_score"] == 1 and best["mean_test_score"] == search.best_score_ == table.mean_test_score.max()
    assert best["params"] == search.best_params_
    np.testing.assert_allclose(table[["split0_test_score", "split1_test_score"]].mean(axis=1), table.mean_test_score)
    np.testing.assert_allclose(
        table[["split0_test_score", "split1_test_score"]].std(axis=1, ddof=0), table.std_test_score
    )


def test_parallel_and_verbose_change_nothing(capsys, monkeypatch):
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, **GRID).fit(problem.X, problem.Y)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("psilearn._utils.progress.MIN_SECONDS", 0.0)
    other = clone(search).set_params(n_jobs=2, verbose=1).fit(problem.X, problem.Y)
    np.testing.assert_allclose(scores(other), scores(search), atol=1e-12)
    assert "OELCV: splits" in capsys.readouterr().err


def test_random_state_makes_the_default_splits_repeatable():
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, supervisions=[0.5], random_state=3)
    first, second = (clone(search).fit(problem.X, problem.Y).cv_results_ for _ in range(2))
    np.testing.assert_array_equal(first["split4_test_score"], second["split4_test_score"])
    other = clone(search).set_params(random_state=4).fit(problem.X, problem.Y).cv_results_
    assert np.any(other["split4_test_score"] != first["split4_test_score"])


def test_splitters_that_look_at_labels_or_groups():
    problem = make("vectors")
    groups = np.arange(40) // 4
    search = IOKRCV(KERNELS_X, Gaussian(0.3), alphas=ALPHAS, cv=GroupKFold(5)).fit(problem.X, problem.Y, groups=groups)
    by_hand = IOKRCV(KERNELS_X, Gaussian(0.3), alphas=ALPHAS, cv=list(GroupKFold(5).split(problem.X, groups=groups)))
    np.testing.assert_array_equal(scores(search), scores(by_hand.fit(problem.X, problem.Y)))
    classes = np.arange(40) % 2
    assert (
        IOKRCV(KERNELS_X, Gaussian(0.3), alphas=ALPHAS, cv=StratifiedKFold(4)).fit(problem.X, classes).best_score_ <= 0
    )


@pytest.mark.usefixtures("backend")
def test_a_tie_goes_to_the_simpler_model():
    # Labeled outputs lie on a line; a second direction, seen in unlabeled outputs alone, changes no score.
    X = np.random.default_rng(0).standard_normal((40, 2))
    Y = X[:, :1] @ np.array([[1.0, 2.0, 0.0]])
    U = np.vstack([Y, [[0.0, 0.0, 0.5]]])
    search = KDECV(Linear(), Linear(), alphas=[1e-6], n_components=[1, 2], cv=KFold(4)).fit(X, Y, unlabeled=U)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"][0], search.cv_results_["mean_test_score"][1])
    assert search.best_params_["n_components"] == 1


def test_one_standard_error_rule(pd):
    problem = make("vectors")
    search = OELCV(
        KERNELS_X, problem.kernel, alphas=[1e-5, 1e-3, 1e-1], n_components=[1, 2, 4, 8], supervisions=[0.5], cv=KFold(5)
    )
    best = clone(search).fit(problem.X, problem.Y)
    simple = clone(search).set_params(one_standard_error=True).fit(problem.X, problem.Y)
    table = pd.DataFrame(best.cv_results_)
    splits = table[[f"split{j}_test_score" for j in range(5)]]
    limit = best.best_score_ - splits.loc[best.best_index_].std(ddof=1) / np.sqrt(5)
    allowed = table[table.mean_test_score >= limit]
    assert simple.best_params_["n_components"] == allowed.param_n_components.min()
    chosen = allowed[allowed.param_n_components == allowed.param_n_components.min()]
    assert simple.best_params_["alpha"] == chosen.param_alpha.max()


def test_default_grids_just_work():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 1]), 0.1 * rng.standard_normal(120)])
    search = OELCV(random_state=0).fit(X[:90], Y[:90])
    table = search.cv_results_
    assert len(set(map(repr, table["param_input_kernel"]))) == 5
    assert np.any(np.isclose(table["param_alpha"], 1 / np.sqrt(90)))
    assert search.score(X[90:], Y[90:]) > OEL().fit(X[:90], np.roll(Y[:90], 1, axis=0)).score(X[90:], Y[90:])
    # as good as the best of a coarse grid, with a look at the test set
    coarse = max(
        OEL(Gaussian(g), Gaussian(), alpha=a).fit(X[:90], Y[:90]).score(X[90:], Y[90:])
        for g, a in product([0.1, 1.0, 10.0], [1e-6, 1e-4, 1e-2])
    )
    assert search.score(X[90:], Y[90:]) > coarse - 0.1


@parametrize_with_checks(
    [OELCV(alphas=[1e-3, 1e-1], supervisions=[0.5], cv=2), KDECV(alphas=[1e-3], cv=2), IOKRCV(alphas=[1e-3], cv=2)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.usefixtures("backend")
def test_the_best_setting_is_refitted_on_all_data(problem):
    search = OELCV(KERNELS_X, problem.kernel, **GRID)
    search.fit(problem.X, problem.Y, problem.unlabeled)
    again = OEL(**search.best_params_).fit(problem.X, problem.Y, problem.unlabeled)
    np.testing.assert_allclose(search.embed(problem.X_test), again.embed(problem.X_test), atol=1e-10)
    np.testing.assert_array_equal(
        search.predict_topk(problem.X_test, 2).indices, again.predict_topk(problem.X_test, 2).indices
    )
    np.testing.assert_allclose(search.transform_outputs(problem.Y), again.transform_outputs(problem.Y), atol=1e-10)
    search.set_params(scoring="loss")
    assert search.score(problem.X, problem.Y) == pytest.approx(again.score(problem.X, problem.Y))
    np.testing.assert_array_equal(
        search.truth_positions(problem.X, problem.Y).nearer, again.truth_positions(problem.X, problem.Y).nearer
    )
    assert type(search.predict(problem.X_test)) is type(problem.Y)


def test_without_a_refit_there_are_scores_and_no_model():
    problem = make("vectors")
    full = OELCV(KERNELS_X, problem.kernel, alphas=ALPHAS, n_components=SIZES, supervisions=[0.5], cv=CV).fit(
        problem.X, problem.Y
    )
    scores = clone(full).set_params(refit=False).fit(problem.X, problem.Y)
    assert scores.best_index_ == full.best_index_ and scores.best_score_ == full.best_score_
    with pytest.raises(NotFittedError, match="refit=False"):
        scores.predict(problem.X)
    full.set_params(refit=False).fit(problem.X, problem.Y)
    assert not hasattr(full, "best_estimator_"), "the model of an earlier fit would be a stale one"


@pytest.mark.usefixtures("backend")
def test_outputs_of_length_zero_and_masks():
    X = np.random.default_rng(0).standard_normal((12, 2))
    assert (
        OELCV(KERNELS_X, Linear(), alphas=ALPHAS, supervisions=[0.0, 0.5, 1.0], cv=2)
        .fit(X, np.zeros((12, 2)))
        .best_score_
        == 0
    )
    held = np.arange(12) < 4
    by_mask = IOKRCV(KERNELS_X, Linear(), alphas=ALPHAS, cv=[(~held, held)]).fit(X, X)
    by_index = IOKRCV(KERNELS_X, Linear(), alphas=ALPHAS, cv=[(np.flatnonzero(~held), np.flatnonzero(held))]).fit(X, X)
    np.testing.assert_array_equal(by_mask.cv_results_["mean_test_score"], by_index.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("kind", "kernel"), [("tags", Dice), ("sparse tags", Dice), ("rankings", Kemeny), ("vectors", Gaussian)]
)
def test_the_default_output_kernel_depends_on_y(kind, kernel):
    problem = make(kind)
    search = IOKRCV(KERNELS_X[0], alphas=ALPHAS, cv=2).fit(problem.X, problem.Y)
    assert type(search.best_estimator_.output_kernel_) is kernel


def test_predictions_are_those_of_the_best_estimator(tmp_path):
    problem = make("tags")
    search = KDECV(KERNELS_X, Dice(), alphas=ALPHAS, n_components=SIZES, cv=2).fit(problem.X[:25], problem.Y[:25])
    X, Y, known = problem.X[25:], problem.Y[25:], problem.Y
    model = search.best_estimator_
    assert search.calibrate(X, Y, known) is search
    sets = search.predict_set(X, 0.5, known)
    np.testing.assert_array_equal(sets.sizes, model.predict_set(X, 0.5, known).sizes)
    ranked = list(search.rank_candidates(X, known, k=2, ties="optimistic", coverage=0.5))
    for ours, theirs in zip(ranked, model.rank_candidates(X, known, k=2, ties="optimistic", coverage=0.5), strict=True):
        np.testing.assert_array_equal(ours.indices, theirs.indices)
    positions = search.truth_positions(X, Y, known)
    np.testing.assert_array_equal(positions.nearer, model.truth_positions(X, Y, known).nearer)
    embedded = search.candidate_set(known, tmp_path / "candidates")
    np.testing.assert_array_equal(search.predict(X, embedded), model.predict(X, known))


def test_iterators_of_unlabeled_outputs_serve_the_search_and_the_refit():
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, **GRID)
    stored = clone(search).fit(problem.X, problem.Y, problem.unlabeled)
    streamed = clone(search).fit(problem.X, problem.Y, iter([problem.unlabeled[:10], problem.unlabeled[10:]]))
    np.testing.assert_allclose(scores(streamed), scores(stored))
    assert len(streamed.best_estimator_.candidates_) == len(stored.best_estimator_.candidates_)
    with pytest.warns(UserWarning, match="unlabeled contains no outputs"):
        empty = clone(search).fit(problem.X, problem.Y, iter([problem.unlabeled[:0]]))
    np.testing.assert_allclose(scores(empty), scores(clone(search).fit(problem.X, problem.Y)))


def test_input_kernels_learn_from_the_outputs_of_each_split():
    problem = make("vectors")
    aligned = Aligned([Gaussian(0.2), Linear()], problem.kernel)
    search = IOKRCV([aligned, Gaussian(1.0, base=aligned)], problem.kernel, alphas=ALPHAS, cv=CV).fit(
        problem.X, problem.Y
    )
    models = [IOKR(**params) for params in search.cv_results_["params"]]
    np.testing.assert_allclose(scores(search), refit_scores(models, problem, None, closed_form), atol=1e-9)


def test_a_failed_fit_leaves_the_earlier_state(monkeypatch):
    problem = make("vectors")
    search = IOKRCV(KERNELS_X[0], problem.kernel, alphas=ALPHAS, cv=3).fit(problem.X, problem.Y)
    before = dict(vars(search))

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(IOKR, "fit", fail)
    with pytest.raises(MemoryError):
        search.fit(problem.X[:20], problem.Y[:20])
    assert vars(search).keys() == before.keys() and all(vars(search)[name] is before[name] for name in before)
    assert len(search.predict(problem.X)) == len(problem.X)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("refit", "mse", "refit must be True or False; got 'mse'"),
        ("one_standard_error", 1, "one_standard_error must be True or False; got 1"),
        ("verbose", "yes", "verbose must be an integer ≥ 0, True or False; got 'yes'"),
        ("verbose", -1, "verbose must be an integer ≥ 0"),
    ],
)
def test_flags_are_validated(name, value, message):
    problem = make("vectors")
    search = IOKRCV(KERNELS_X[0], problem.kernel, alphas=ALPHAS, **{name: value})
    with pytest.raises(ValueError, match=message):
        search.fit(problem.X, problem.Y)


def test_candidates_are_validated_even_if_they_are_not_used():
    problem = make("vectors")
    search = IOKRCV(KERNELS_X[0], problem.kernel, alphas=ALPHAS, scoring="mse", cv=3)
    with pytest.raises(ValueError, match="candidates holds 2 sets for"):
        search.fit(problem.X, problem.Y, candidates=[problem.Y, problem.Y])
    search.fit(problem.X, problem.Y, candidates=problem.Y)
