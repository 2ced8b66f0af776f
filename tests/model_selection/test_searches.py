"""The path against the naive loop: one fit for every setting and split."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV, CandidateSets
from psilearn._backend import asarray
from psilearn._utils.samples import take
from psilearn.kernels import Dice, Gaussian, Linear, Tanimoto
from psilearn.metrics import f1_score, kernel_loss, top_k_accuracy
from psilearn.rankings import all_rankings
from psilearn.regression import RidgePath
from tests.problems import block, make

KERNELS_X = [Gaussian(0.2), Gaussian(1.0)]
ALPHAS = [1e-4, 1e-2]
SIZES = [1, 2, 4]
SUPERVISIONS = [0.0, 0.3, 0.7, 1.0]
CV = ShuffleSplit(2, test_size=0.25, random_state=0)

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning")


def closed_form(model, X, y, candidates):
    """Minus the mean of |G*Gĥ(x) − ψ(y)|², by definition."""
    Z, g = model.embed(X), model.transform_outputs(y)
    return -np.mean((Z**2 - 2 * Z * g).sum(axis=1) + model.output_kernel_.diag(y))


def minus_loss(model, X, y, candidates):
    return -float(kernel_loss(y, model.predict(X, candidates), model.output_kernel_))


def f1(model, X, y, candidates):
    return float(f1_score(y, model.predict(X, candidates)))


def top_2(model, X, y, candidates):
    return float(top_k_accuracy(model.rank(X, y, candidates), 2))


def naive(models, problem, unlabeled, score, candidates=None):
    """Fit every model on every split."""
    rows = []
    for model, (train, held) in product(models, CV.split(problem.X)):
        model = clone(model).fit(problem.X[train], take(problem.Y, train), unlabeled=unlabeled)
        given = candidates
        if isinstance(candidates, CandidateSets):
            given = CandidateSets([candidates.sets[i] for i in held])
        rows.append(score(model, problem.X[held], take(problem.Y, held), given))
    return np.reshape(rows, (len(models), -1))


def scores(search):
    return np.column_stack([search.cv_results_[f"split{j}_test_score"] for j in range(2)])


@pytest.mark.parametrize("with_unlabeled", [True, False])
@pytest.mark.parametrize(("name", "score"), [("mse", closed_form), ("loss", minus_loss)])
def test_oelcv_scores_are_those_of_the_naive_loop(problem, with_unlabeled, name, score, backend):
    U = problem.unlabeled if with_unlabeled else None
    search = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, SUPERVISIONS, cv=CV, scoring=name)
    search.fit(problem.X, problem.Y, unlabeled=U)
    models = [OEL(**params) for params in search.cv_results_["params"]]
    assert len(models) == 2 * 2 * 3 * 4
    some = slice(None, None, 1 if backend == "numpy" else 5)  # 5 meets every value of each parameter
    np.testing.assert_allclose(scores(search)[some], naive(models[some], problem, U, score), atol=1e-7)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("supervisions", [[1.0], [0.0], [0.4]])
def test_single_supervisions(problem, supervisions):
    search = OELCV(KERNELS_X[0], problem.kernel, ALPHAS, SIZES, supervisions, cv=CV)
    search.fit(problem.X, problem.Y, unlabeled=problem.unlabeled)
    models = [OEL(**params) for params in search.cv_results_["params"]]
    np.testing.assert_allclose(scores(search), naive(models, problem, problem.unlabeled, closed_form), atol=1e-7)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("name", "score"), [("mse", closed_form), ("loss", minus_loss), ("top_2", top_2)])
def test_iokrcv_and_kdecv_scores_are_those_of_the_naive_loop(problem, name, score):
    U = problem.unlabeled
    for search, Estimator in (
        (IOKRCV(KERNELS_X, problem.kernel, ALPHAS, cv=CV, scoring=name), IOKR),
        (KDECV(KERNELS_X, problem.kernel, ALPHAS, SIZES, cv=CV, scoring=name), KDE),
    ):
        search.fit(problem.X, problem.Y, unlabeled=U)
        models = [Estimator(**params) for params in search.cv_results_["params"]]
        np.testing.assert_allclose(scores(search), naive(models, problem, U, score), atol=1e-7)
        assert type(search.best_estimator_) is Estimator


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("own_sets", [False, True])
@pytest.mark.parametrize(("name", "score"), [("f1", f1), ("top_2", top_2), ("loss", minus_loss)])
def test_decoding_to_given_candidates(name, score, own_sets):
    problem = make("tags")
    candidates = np.unique(np.vstack([problem.Y, problem.candidates]), axis=0)
    if own_sets:
        rng = np.random.default_rng(0)
        candidates = CandidateSets(
            [np.vstack([y[None], candidates[rng.permutation(len(candidates))[:6]]]) for y in problem.Y]
        )
    search = OELCV(KERNELS_X, Dice(), ALPHAS, SIZES, SUPERVISIONS, cv=CV, scoring=name)
    search.fit(problem.X, problem.Y, problem.unlabeled, candidates=candidates)
    models = [OEL(**params) for params in search.cv_results_["params"]]
    np.testing.assert_allclose(scores(search), naive(models, problem, problem.unlabeled, score, candidates), atol=1e-7)


@pytest.mark.usefixtures("backend")
def test_several_output_kernels_by_a_decoded_metric():
    problem = make("sparse tags")
    search = OELCV(KERNELS_X[0], [Dice(), Tanimoto()], ALPHAS, SIZES, [0.5], cv=CV, scoring="f1")
    search.fit(problem.X, problem.Y)
    models = [OEL(**params) for params in search.cv_results_["params"]]
    assert {type(model.output_kernel) for model in models} == {Dice, Tanimoto}
    np.testing.assert_allclose(scores(search), naive(models, problem, None, f1), atol=1e-9)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_output_kernels_together_are_output_kernels_apart(n_jobs):
    problem = make("tags")
    search = OELCV(KERNELS_X, [Dice(), Gaussian(0.5)], ALPHAS, SIZES, SUPERVISIONS, cv=CV, scoring="f1", n_jobs=n_jobs)
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
    IOKRCV(KERNELS_X, [Dice(), Tanimoto()], ALPHAS, cv=CV, scoring="f1").fit(problem.X, problem.Y)
    assert len(calls) == 2 * 2  # input kernels and splits


def test_a_function_scores():
    problem = make("tags")
    search = OELCV(KERNELS_X, Dice(), ALPHAS, SIZES, [0.5], cv=CV, scoring=lambda y, p: float(f1_score(y, p)))
    named = clone(search).set_params(scoring="f1")
    np.testing.assert_array_equal(scores(search.fit(problem.X, problem.Y)), scores(named.fit(problem.X, problem.Y)))


@pytest.mark.usefixtures("backend")
def test_kendall_and_hamming():
    rankings, tags = make("rankings"), make("tags")
    tau = IOKRCV(KERNELS_X, rankings.kernel, ALPHAS, cv=CV, scoring="kendall_tau").fit(rankings.X, rankings.Y)
    loss = IOKRCV(KERNELS_X, rankings.kernel, ALPHAS, cv=CV, scoring="loss").fit(rankings.X, rankings.Y)
    np.testing.assert_allclose(scores(loss), 2 * scores(tau) - 2, atol=1e-9)  # |ψ − ψ'|² = 2 − 2τ
    assert (IOKRCV(KERNELS_X, Dice(), ALPHAS, cv=CV, scoring="hamming").fit(tags.X, tags.Y).best_score_) <= 0


@pytest.mark.usefixtures("backend")
def test_iterated_path_agrees_with_the_dense_one(monkeypatch):
    rng = np.random.default_rng(0)
    X, U = rng.standard_normal((60, 3)), rng.standard_normal((150, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], rng.standard_normal(60)])
    search = OELCV(KERNELS_X, Gaussian(0.7), [1e-5, 1e-3, 1e-1], [1, 3, 5], SUPERVISIONS, cv=CV)
    dense = scores(clone(search).fit(X, Y, U))
    monkeypatch.setattr("psilearn.embedding.subspace_path.SMALL", 10)
    np.testing.assert_allclose(scores(clone(search).fit(X, Y, U)), dense, atol=1e-6)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("k", [5, 30])
def test_iterated_path_where_few_directions_are_there_to_find(monkeypatch, k):
    # Classes as one-hot rows: the moment has many equal eigenvalues and the labeled outputs fill a few axes.
    rng = np.random.default_rng(0)
    classes = np.eye(400)
    Y, U = classes[rng.integers(0, 40, 60)], classes[rng.integers(0, 400, 900) % rng.integers(1, 400, 900)]
    X = rng.standard_normal((60, 3))
    search = OELCV(KERNELS_X[0], Linear(), ALPHAS, [2, k], [0.3, 0.7], cv=CV)
    dense = scores(clone(search).fit(X, Y, U))
    monkeypatch.setattr("psilearn.embedding.subspace_path.SMALL", 10)
    np.testing.assert_allclose(scores(clone(search).fit(X, Y, U)), dense, atol=1e-5)


@pytest.mark.usefixtures("backend")
def test_outputs_of_length_zero_and_masks():
    X = np.random.default_rng(0).standard_normal((12, 2))
    assert (
        OELCV(KERNELS_X, Linear(), ALPHAS, supervisions=[0.0, 0.5, 1.0], cv=2).fit(X, np.zeros((12, 2))).best_score_
        == 0
    )
    held = np.arange(12) < 4
    by_mask = IOKRCV(KERNELS_X, Linear(), ALPHAS, cv=[(~held, held)]).fit(X, X)
    by_index = IOKRCV(KERNELS_X, Linear(), ALPHAS, cv=[(np.flatnonzero(~held), np.flatnonzero(held))]).fit(X, X)
    np.testing.assert_array_equal(by_mask.cv_results_["mean_test_score"], by_index.cv_results_["mean_test_score"])


@pytest.mark.usefixtures("backend")
def test_the_best_setting_is_refitted_on_all_data(problem):
    search = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, SUPERVISIONS, cv=CV)
    search.fit(problem.X, problem.Y, problem.unlabeled)
    again = OEL(**search.best_params_).fit(problem.X, problem.Y, problem.unlabeled)
    np.testing.assert_allclose(search.embed(problem.X_test), again.embed(problem.X_test), atol=1e-10)
    np.testing.assert_array_equal(
        search.predict_topk(problem.X_test, 2).indices, again.predict_topk(problem.X_test, 2).indices
    )
    np.testing.assert_allclose(search.transform_outputs(problem.Y), again.transform_outputs(problem.Y), atol=1e-10)
    assert search.score(problem.X, problem.Y) == pytest.approx(again.score(problem.X, problem.Y))
    np.testing.assert_array_equal(search.rank(problem.X, problem.Y).nearer, again.rank(problem.X, problem.Y).nearer)
    assert type(search.predict(problem.X_test)) is type(problem.Y)


def test_without_a_refit_there_are_scores_and_no_model():
    problem = make("vectors")
    full = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, [0.5], cv=CV).fit(problem.X, problem.Y)
    scores = clone(full).set_params(refit=False).fit(problem.X, problem.Y)
    assert scores.best_index_ == full.best_index_ and scores.best_score_ == full.best_score_
    with pytest.raises(NotFittedError, match="refit=False"):
        scores.predict(problem.X)
    full.set_params(refit=False).fit(problem.X, problem.Y)
    assert not hasattr(full, "best_estimator_"), "the model of an earlier fit would be a stale one"


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("own_sets", [False, True])
@pytest.mark.parametrize("unlabeled", [False, True])
def test_several_scorings_at_once_are_one_search_each(own_sets, unlabeled):
    problem = make("tags")
    names = ["f1", "mse", "top_2", "loss", "hamming"]
    sets = CandidateSets([take(problem.Y, slice(i % 3, 12)) for i in range(len(problem.X))]) if own_sets else None
    data = {"unlabeled": problem.unlabeled if unlabeled else None, "candidates": sets}
    search = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, [0.3, 1.0], cv=CV, scoring=names)
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
    with pytest.raises(ValueError, match=r"scoring must (name each score once|be one of)"):
        OELCV(scoring=scoring).fit(problem.X, problem.Y)


def test_results_are_a_table():
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, SUPERVISIONS, cv=CV).fit(problem.X, problem.Y)
    table = pd.DataFrame(search.cv_results_)
    assert len(table) == 48
    best = table.loc[search.best_index_]
    assert best["rank_test_score"] == 1 and best["mean_test_score"] == search.best_score_ == table.mean_test_score.max()
    assert best["params"] == search.best_params_
    np.testing.assert_allclose(table[["split0_test_score", "split1_test_score"]].mean(axis=1), table.mean_test_score)
    np.testing.assert_allclose(
        table[["split0_test_score", "split1_test_score"]].std(axis=1, ddof=0), table.std_test_score
    )


def test_parallel_and_verbose_change_nothing(capsys):
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, SUPERVISIONS, cv=CV).fit(problem.X, problem.Y)
    other = clone(search).set_params(n_jobs=2, verbose=1).fit(problem.X, problem.Y)
    np.testing.assert_allclose(scores(other), scores(search), atol=1e-12)
    assert "kernels × splits" in capsys.readouterr().out


def test_random_state_makes_the_default_splits_repeatable():
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, ALPHAS, SIZES, [0.5], random_state=3)
    first, second = (clone(search).fit(problem.X, problem.Y).cv_results_ for _ in range(2))
    np.testing.assert_array_equal(first["split4_test_score"], second["split4_test_score"])
    other = clone(search).set_params(random_state=4).fit(problem.X, problem.Y).cv_results_
    assert np.any(other["split4_test_score"] != first["split4_test_score"])


def test_splitters_that_look_at_labels_or_groups():
    problem = make("vectors")
    groups = np.arange(40) // 4
    search = IOKRCV(KERNELS_X, Gaussian(0.3), ALPHAS, cv=GroupKFold(5)).fit(problem.X, problem.Y, groups=groups)
    by_hand = IOKRCV(KERNELS_X, Gaussian(0.3), ALPHAS, cv=list(GroupKFold(5).split(problem.X, groups=groups)))
    np.testing.assert_array_equal(scores(search), scores(by_hand.fit(problem.X, problem.Y)))
    classes = np.arange(40) % 2
    assert IOKRCV(KERNELS_X, Gaussian(0.3), ALPHAS, cv=StratifiedKFold(4)).fit(problem.X, classes).best_score_ <= 0


@pytest.mark.usefixtures("backend")
def test_a_tie_goes_to_the_simpler_model():
    # Labeled outputs lie on a line; a second direction, seen in unlabeled outputs alone, changes no score.
    X = np.random.default_rng(0).standard_normal((40, 2))
    Y = X[:, :1] @ np.array([[1.0, 2.0, 0.0]])
    U = np.vstack([Y, [[0.0, 0.0, 0.5]]])
    search = KDECV(Linear(), Linear(), [1e-6], [1, 2], cv=KFold(4)).fit(X, Y, unlabeled=U)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"][0], search.cv_results_["mean_test_score"][1])
    assert search.best_params_["n_components"] == 1


def test_one_standard_error_rule():
    problem = make("vectors")
    search = OELCV(KERNELS_X, problem.kernel, [1e-5, 1e-3, 1e-1], [1, 2, 4, 8], [0.5], cv=KFold(5))
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
        OEL(Gaussian(g), Gaussian(), a).fit(X[:90], Y[:90]).score(X[90:], Y[90:])
        for g, a in product([0.1, 1.0, 10.0], [1e-6, 1e-4, 1e-2])
    )
    assert search.score(X[90:], Y[90:]) > coarse - 0.1


@parametrize_with_checks(
    [OELCV(alphas=[1e-3, 1e-1], supervisions=[0.5], cv=2), KDECV(alphas=[1e-3], cv=2), IOKRCV(alphas=[1e-3], cv=2)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# Leave-one-out


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", ["vectors", "unnormalised", "tags", "rankings", "strings"])
def test_loo_is_n_regressions_that_leave_one_out(kind):
    problem = make(kind)
    n, ridge = len(problem.X), len(problem.X) * 1e-2
    search = OELCV(KERNELS_X[0], problem.kernel, [1e-2], [1, 3], [0.4, 1.0], cv="loo", refit=False)
    search.fit(problem.X, problem.Y)
    K = block(KERNELS_X[0], problem.X)
    norms = problem.kernel.diag(problem.Y)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        g = OEL(**params).fit(problem.X, problem.Y).transform_outputs(problem.Y)  # directions of all examples
        errors = []
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            z = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(n - 1), g[rest])
            errors.append(np.sum(z**2) - 2 * z @ g[i] + norms[i])
        assert score == pytest.approx(-np.mean(errors), rel=1e-6)


@pytest.mark.usefixtures("backend")
def test_loo_of_iokr_is_the_closed_form_of_the_ridge_path():
    problem = make("vectors")
    search = IOKRCV(KERNELS_X, problem.kernel, ALPHAS, cv="loo", refit=False).fit(problem.X, problem.Y)
    path = [RidgePath(kernel).fit(problem.X) for kernel in KERNELS_X]
    psi = np.linalg.cholesky(block(problem.kernel, problem.Y) + 1e-12 * np.eye(len(problem.X)))
    expected = np.concatenate([-one.leave_one_out(asarray(psi), ALPHAS).mean(axis=1) for one in path])
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-6)


def test_loo_decodes_to_what_does_not_hold_the_answer():
    problem = make("tags")
    with pytest.raises(ValueError, match='cv="loo" with a decoded scoring needs candidates'):
        OELCV(KERNELS_X[0], problem.kernel, cv="loo", scoring="f1").fit(problem.X, problem.Y)
    OELCV(KERNELS_X[0], problem.kernel, [1e-2], [2], cv="loo", scoring="f1").fit(
        problem.X, problem.Y, candidates=problem.candidates
    )


@pytest.mark.usefixtures("backend")
def test_loo_decodes_over_all_rankings():
    problem = make("rankings")
    n, everything = len(problem.X), all_rankings(4)
    search = IOKRCV(KERNELS_X[0], problem.kernel, [1e-2], cv="loo", scoring="kendall_tau").fit(problem.X, problem.Y)
    K, taus = block(KERNELS_X[0], problem.X), []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        weights = np.linalg.solve(K[np.ix_(rest, rest)] + n * 1e-2 * np.eye(n - 1), K[rest, i])
        best = everything[np.argmax(weights @ block(problem.kernel, problem.Y[rest], everything))]
        taus.append(block(problem.kernel, [best], [problem.Y[i]])[0, 0])
    assert search.best_score_ == pytest.approx(np.mean(taus))


@pytest.mark.parametrize("given", [{"groups": np.arange(40)}, {}], ids=["groups", "standard error"])
def test_loo_has_neither_groups_nor_a_standard_error(given):
    problem = make("vectors")
    search = OELCV(cv="loo", one_standard_error=not given)
    with pytest.raises(ValueError, match=r'cv="loo" leaves single examples out.*GroupKFold\(\) or cv=5'):
        search.fit(problem.X, problem.Y, **given)


def test_a_word_for_cv_is_loo_or_refused():
    problem = make("vectors")
    with pytest.raises(ValueError, match=r"cv must be .* \"loo\" or None; got 'LOO'"):
        OELCV(cv="LOO").fit(problem.X, problem.Y)
    with pytest.raises(ValueError, match='cv="loo" needs at least 2 examples; got 1'):
        OELCV(cv="loo").fit(problem.X[:1], problem.Y[:1])
