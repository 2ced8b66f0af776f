"""Any scikit-learn regressor as ĥ: the same answers where it is kernel ridge regression, honest moments elsewhere."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import IOKR, KDE, OEL, Landmarks, save_model
from psilearn._utils.samples import n_samples
from psilearn.kernels import Dice, Gaussian, Linear, Tanimoto
from psilearn.regression import KernelRegression, SklearnRegressor
from tests.problems import make

N, GAMMA, ALPHA = 40, 0.5, 1e-3
RIDGE = KernelRidge(kernel="rbf", gamma=GAMMA, alpha=N * ALPHA)  # K_x + nλI with the n of all pairs
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((N, 3)), RNG.standard_normal((N, 4))


class Odd(RegressorMixin, BaseEstimator):
    """Predicts the same odd thing for every row."""

    def __init__(self, row=0.0):
        self.row = row

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.array([self.row] * len(X))


class Counted(Ridge):
    fits = 0

    def fit(self, X, y):
        Counted.fits += 1
        return super().fit(X, y)


def scores(model, X, outputs):
    """⟨z(x), g(y)⟩, which no choice of axes changes."""
    return model.embed(X) @ model.transform_outputs(outputs).T


@parametrize_with_checks([IOKR(regressor=Ridge()), OEL(regressor=Ridge(), n_components=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [IOKR(), KDE(n_components=4), KDE()], ids=["IOKR", "KDE, p = 4", "KDE"])
def test_kernel_ridge_regression_as_regressor_is_the_route_by_the_kernel(problem, estimator):
    estimator = clone(estimator).set_params(output_kernel=problem.kernel, alpha=ALPHA)
    kernel = clone(estimator).set_params(input_kernel=Gaussian(GAMMA)).fit(problem.X, problem.Y, problem.unlabeled)
    general = clone(estimator).set_params(regressor=RIDGE).fit(problem.X, problem.Y, problem.unlabeled)
    size = 1e-9 * np.abs(kernel.embed(problem.X)).max()
    np.testing.assert_allclose(general.embed(problem.X_test), kernel.embed(problem.X_test), rtol=1e-7, atol=size)
    np.testing.assert_array_equal(general.eigenvalues_, kernel.eigenvalues_)
    for candidates in (None, problem.candidates):
        ours = general.predict_topk(problem.X_test, 3, candidates)
        expected = kernel.predict_topk(problem.X_test, 3, candidates)
        np.testing.assert_array_equal(ours.indices, expected.indices)
        np.testing.assert_allclose(ours.distances, expected.distances, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("c", [0.3, 1.0])
def test_the_embedding_of_oel_comes_from_out_of_fold_values(c):
    """By hand and without coordinates: everything is a combination of ψ(Y), its coefficients from n-by-n matrices."""
    kernel_x, kernel_y, p = Gaussian(GAMMA), Gaussian(0.3), 5
    A = np.zeros((N, N))  # ĥ₋ᵢ(xᵢ) = Σⱼ Aᵢⱼ ψ(yⱼ)
    for train, held in KFold(5, shuffle=True, random_state=0).split(X):
        inverse = np.linalg.inv(kernel_x(X[train]) + N * ALPHA * np.eye(len(train)))
        for i in held:
            for place, j in enumerate(train):
                A[i, j] = kernel_x(X[i : i + 1], X[train])[0] @ inverse[:, place]
    W = np.vstack([np.sqrt(c / N) * A, np.sqrt((1 - c) / N) * np.eye(N)])  # M_c = Σ_k (Wψ)_k (Wψ)_kᵀ
    eigenvalues, U = np.linalg.eigh(W @ kernel_y(Y) @ W.T)
    eigenvalues, U = eigenvalues[::-1][:p], U[:, ::-1][:, :p]
    basis = W.T @ U / np.sqrt(eigenvalues)  # (n, p)  g(y) = basisᵀ k_y(Y, y)
    weights = kernel_x(X) @ np.linalg.inv(kernel_x(X) + N * ALPHA * np.eye(N))  # ĥ(x), fitted on all pairs
    expected = (weights @ kernel_y(Y) @ basis) @ (kernel_y(Y) @ basis).T

    model = OEL(output_kernel=kernel_y, n_components=p, supervision=c, regressor=RIDGE).fit(X, Y)
    np.testing.assert_allclose(model.eigenvalues_, eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(scores(model, X, Y), expected, atol=1e-8)


@pytest.mark.parametrize("regressor", [Ridge(), RandomForestRegressor(10, random_state=0)])
@pytest.mark.parametrize("c", [0.0, 0.4, 1.0])
def test_directions_are_orthonormal_and_ordered(regressor, c):
    model = OEL(output_kernel=Gaussian(0.3), n_components=6, supervision=c, regressor=regressor).fit(X, Y)
    assert model.regression_.directions.shape == (N, 6) == (len(model.embedding_.landmarks), model.n_components_)
    np.testing.assert_allclose(model.regression_.directions.T @ model.regression_.directions, np.eye(6), atol=1e-10)
    basis = model.embedding_.basis  # GG* = BᵀKB
    np.testing.assert_allclose(basis.T @ Gaussian(0.3)(model.embedding_.landmarks) @ basis, np.eye(6), atol=1e-8)
    assert np.all(np.diff(model.eigenvalues_) <= 0) and model.eigenvalues_[-1] > 0
    np.testing.assert_allclose(
        model.embed(X), model.regression_.estimator.predict(X) @ model.regression_.directions, atol=1e-10
    )


def test_oel_without_supervision_is_kde(problem):
    options = {"output_kernel": problem.kernel, "n_components": 4, "regressor": KNeighborsRegressor(3)}
    oel = OEL(supervision=0.0, **options).fit(problem.X, problem.Y, problem.unlabeled)
    kde = KDE(**options).fit(problem.X, problem.Y, problem.unlabeled)
    np.testing.assert_array_equal(oel.embed(problem.X_test), kde.embed(problem.X_test))


@pytest.mark.parametrize("regressor", [RIDGE, RandomForestRegressor(20, random_state=0)])
def test_all_directions_predict_as_iokr(regressor):
    oel = OEL(output_kernel=Linear(), supervision=1.0, regressor=regressor).fit(X, Y)
    iokr = IOKR(output_kernel=Linear(), regressor=regressor).fit(X, Y)
    assert oel.n_components_ == iokr.n_components_ == 4 and iokr.regression_.directions is None
    new = RNG.standard_normal((20, 3))
    ours, expected = oel.predict_topk(new, 5), iokr.predict_topk(new, 5)
    np.testing.assert_array_equal(ours.indices, expected.indices)
    np.testing.assert_allclose(ours.distances, expected.distances, atol=1e-8)


def test_a_regressor_that_memorises_is_not_believed():
    """On inputs that say nothing one neighbor gives the outputs back in sample, and strangers' out of fold."""
    inputs, V = RNG.standard_normal((200, 5)), RNG.standard_normal((200, 3)) * [1.0, 0.5, 0.1]
    nearest = KNeighborsRegressor(1)
    held_out = SklearnRegressor(nearest).fit(inputs).regress(V).moment.parts[0][0]
    in_sample = nearest.fit(inputs, V).predict(inputs)
    np.testing.assert_array_equal(in_sample, V)
    assert np.mean(np.sum(held_out * V, axis=1)) < 0.3 * np.mean(np.sum(V * V, axis=1))  # no longer the outputs
    # E ψ(y) given x is zero, and the moment of an average of many strangers all but vanishes; in sample each tree of a
    # forest has seen most of the pairs, and the moment does not.
    forest = SklearnRegressor(RandomForestRegressor(30, random_state=0)).fit(inputs).regress(V)
    fitted = forest.estimator.predict(inputs)
    assert np.trace(forest.moment.to_matrix()) < 0.5 * np.trace(fitted.T @ fitted / 200)
    smooth = SklearnRegressor(KNeighborsRegressor(50)).fit(inputs).regress(V).moment.to_matrix()
    assert np.trace(smooth) < 0.1 * np.trace(V.T @ V / 200)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_few_pairs_have_few_folds(n):
    model = OEL(output_kernel=Gaussian(0.3), supervision=0.5, regressor=Ridge()).fit(X[:n], Y[:n])
    assert n_samples(model.predict(X)) == N


def test_folds_are_paid_for_where_they_are_looked_at():
    for estimator, fits in ((IOKR(), 1), (KDE(), 1), (OEL(supervision=0.0), 1), (OEL(supervision=0.1), 6)):
        Counted.fits = 0
        estimator.set_params(regressor=Counted()).fit(X, Y)
        assert Counted.fits == fits


REGRESSORS = {
    "network": MLPRegressor(hidden_layer_sizes=(16,), max_iter=30, random_state=0),
    "forest": RandomForestRegressor(5, random_state=0),
    "ridge": Ridge(),
    "pipeline": make_pipeline(StandardScaler(), LinearRegression()),
    "one model a coordinate": MultiOutputRegressor(SVR()),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("regressor", REGRESSORS.values(), ids=REGRESSORS.keys())
def test_regressors_of_many_kinds_on_outputs_of_every_kind(problem, regressor):
    model = OEL(None, problem.kernel, n_components=3, regressor=regressor)
    model.fit(problem.X, problem.Y, problem.unlabeled)
    assert model.embed(problem.X_test).shape == (15, 3)
    prediction = model.predict(problem.X_test, candidates=problem.candidates)
    assert n_samples(prediction) == 15 and type(prediction) is type(problem.candidates)
    assert not hasattr(regressor, "n_features_in_")  # a copy was fitted


@pytest.mark.parametrize("kernel", [Dice(), Tanimoto()])
@pytest.mark.parametrize("form", [list, tuple, np.array, "Series"])
def test_texts_go_through_a_pipeline(kernel, form):
    form = form if callable(form) else getattr(pytest.importorskip("pandas"), form)
    words = np.array(["red", "green", "blue", "round", "square"])
    tags = (RNG.random((60, 5)) < 0.5).astype(int)
    tags[:, 0] |= ~tags.any(axis=1)
    texts = [" ".join(words[row.astype(bool)]) for row in tags]
    pipeline = make_pipeline(TfidfVectorizer(), LinearRegression())
    model = OEL(output_kernel=kernel, n_components=5, regressor=pipeline).fit(form(texts), tags)
    assert np.mean(model.predict(form(texts)) == tags) > 0.9
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "form", [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, "DataFrame", np.ndarray.tolist]
)
def test_inputs_of_every_form_give_one_answer(form):
    form = form if callable(form) else getattr(pytest.importorskip("pandas"), form)
    model = OEL(output_kernel=Gaussian(0.3), n_components=4, regressor=Ridge(solver="lsqr", tol=1e-12))
    dense = clone(model).fit(X, Y)
    other = clone(model).fit(form(X), Y)
    np.testing.assert_allclose(scores(other, form(X), Y), scores(dense, X, Y), atol=1e-6)


def test_data_frames_reach_the_regressor_and_their_columns_are_checked(pd):
    index = np.linspace(5.0, 1.0, N)  # which a slice by label would stumble over
    frame = pd.DataFrame(X, columns=list("abc"), index=index)
    model = OEL(output_kernel=Gaussian(0.3), regressor=Ridge()).fit(frame, Y)
    np.testing.assert_array_equal(model.regression_.estimator.feature_names_in_, list("abc"))
    np.testing.assert_array_equal(model.feature_names_in_, list("abc"))
    with config_context(working_memory=0.01):
        np.testing.assert_allclose(
            model.embed(frame), model.regression_.estimator.predict(frame) @ model.regression_.directions, atol=1e-10
        )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_the_regressor_judges_the_inputs():
    gaps = X.copy()
    gaps[3, 1] = np.nan
    trees = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=3))
    assert n_samples(IOKR(output_kernel=Linear(), regressor=trees).fit(gaps, Y).predict(gaps)) == N
    with pytest.raises(ValueError, match="X contains NaN"):
        IOKR(output_kernel=Linear(), regressor=Ridge()).fit(gaps, Y)


def test_one_coordinate_comes_without_its_axis():
    target = X[:, 0] + 0.1
    for regressor in (RandomForestRegressor(20, random_state=0), SVR(), Ridge(), MultiOutputRegressor(SVR())):
        for estimator in (IOKR(), OEL(supervision=1.0)):
            estimator.set_params(output_kernel=Linear(), regressor=regressor)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model = estimator.fit(X, target)
            assert model.n_components_ == 1 and model.embed(X).shape == (N, 1)
            assert np.corrcoef(model.predict(X), target)[0, 1] > 0.8


class Shy:
    """Inputs that have a length and cannot be cut."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)


class OnShy(Ridge):
    def fit(self, X, y):
        return super().fit(X.values, y)

    def predict(self, X):
        return super().predict(X.values)


def test_blocks_do_not_change_the_answer():
    for estimator in (IOKR(), OEL(n_components=3)):
        model = estimator.set_params(output_kernel=Gaussian(0.3), regressor=Ridge()).fit(X, Y)
        whole = model.embed(X)
        with config_context(working_memory=0.005):
            np.testing.assert_allclose(model.embed(X), whole, atol=1e-12)
    options = {"output_kernel": Gaussian(0.3), "n_components": 3}
    shy = KDE(regressor=OnShy(), **options).fit(Shy(X), Y)
    with config_context(working_memory=0.005):
        expected = KDE(regressor=Ridge(), **options).fit(X, Y).embed(X)
        np.testing.assert_allclose(shy.embed(Shy(X)), expected, atol=1e-12)


def test_single_precision():
    options = {"output_kernel": Gaussian(0.3), "n_components": 4, "supervision": 0.5, "regressor": Ridge()}
    for landmarks in (None, 30):
        single = OEL(dtype="float32", output_landmarks=landmarks, **options).fit(X, Y)
        double = OEL(output_landmarks=landmarks, **options).fit(X, Y)
        assert single.embed(X).dtype == np.float32
        np.testing.assert_allclose(scores(single, X, Y), scores(double, X, Y), atol=1e-4)


@pytest.mark.parametrize("c", [0.0, 0.4, 1.0])
def test_as_many_output_landmarks_as_outputs_are_exact(c):
    U = RNG.standard_normal((30, 4))
    options = {"output_kernel": Gaussian(0.3), "n_components": 5, "supervision": c, "regressor": RIDGE}
    exact = OEL(**options).fit(X, Y, unlabeled=U)
    for landmarks in (Landmarks(200, "pivoted"), Landmarks(200, "leverage")):
        model = OEL(output_landmarks=landmarks, **options).fit(X, Y, unlabeled=U)
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-7)
        np.testing.assert_allclose(scores(model, X, U), scores(exact, X, U), atol=1e-8)


def test_alpha_reaches_the_leverage_scores_of_outputs_and_nothing_else():
    options = {"output_kernel": Gaussian(0.3), "n_components": 5, "regressor": RIDGE}
    a, b = (OEL(alpha=alpha, **options).fit(X, Y) for alpha in (1e-6, 1.0))
    np.testing.assert_array_equal(a.embed(X), b.embed(X))
    OEL(alpha=1e-6, output_landmarks=Landmarks(10, "leverage"), **options).fit(X, Y).predict(X)


@pytest.mark.parametrize("c", [0.0, 0.4, 1.0])
def test_partial_fit_goes_on_as_if_fit_had_seen_everything(c):
    U = RNG.standard_normal((60, 4))
    landmarks = Landmarks(N, "labeled")
    options = {"output_kernel": Gaussian(0.3), "n_components": 5, "supervision": c, "output_landmarks": landmarks}
    at_once = OEL(regressor=RIDGE, **options).fit(X, Y, unlabeled=U)
    Counted.fits = 0
    later = OEL(regressor=RIDGE, **options).fit(X, Y, unlabeled=U[:20]).partial_fit(U[20:])
    np.testing.assert_allclose(later.eigenvalues_, at_once.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(scores(later, X, U), scores(at_once, X, U), atol=1e-9)
    model = OEL(regressor=Counted(), **options).fit(X, Y)
    fits = Counted.fits
    model.partial_fit(U)
    assert Counted.fits == fits  # the regression and its out-of-fold moment are kept


def test_conformal_sets():
    model = OEL(output_kernel=Gaussian(0.3), n_components=5, regressor=Ridge()).fit(X, Y)
    sets = model.calibrate(X, Y).predict_set(X, coverage=0.8)
    assert np.mean([i in index for i, index in enumerate(sets.indices)]) >= 0.8


def test_clone_pickle_and_nested_parameters():
    model = OEL(output_kernel=Gaussian(0.3), n_components=5, regressor=Ridge(alpha=3.0))
    assert clone(model).regressor.alpha == 3.0 and clone(model).regressor is not model.regressor
    assert model.set_params(regressor__alpha=2.0).regressor.alpha == 2.0
    model.fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).embed(X), model.embed(X))


def test_grid_search_over_parameters_of_the_regressor():
    problem = make("tags")
    model = OEL(output_kernel=Dice(), n_components=4, regressor=Ridge())
    grid = {"regressor__alpha": [1e-2, 1e4], "supervision": [0.3, 1.0]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(problem.X, problem.Y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert search.best_estimator_.regression_.estimator.alpha == search.best_params_["regressor__alpha"]


def test_refitting_without_the_regressor_forgets_it():
    kernel = IOKR(Gaussian(GAMMA), Gaussian(0.3), alpha=ALPHA).fit(X, Y)
    model = IOKR(output_kernel=Gaussian(0.3), alpha=ALPHA, regressor=Ridge()).fit(X, Y)
    assert not hasattr(model, "dual_coef_") and not hasattr(model, "X_fit_") and not hasattr(model, "input_kernel_")
    model.set_params(regressor=None, input_kernel=Gaussian(GAMMA)).fit(X, Y)
    assert isinstance(model.regression_, KernelRegression)
    np.testing.assert_array_equal(model.embed(X), kernel.embed(X))
    model.set_params(regressor=RIDGE, input_kernel=None).fit(X, Y)
    np.testing.assert_allclose(model.embed(X), kernel.embed(X), atol=1e-9)


@pytest.mark.parametrize("bad", ["ridge", Ridge, 3, StandardScaler(), make_pipeline(StandardScaler())])
def test_what_is_no_regressor(bad):
    with pytest.raises(TypeError, match="regressor must be a scikit-learn regressor"):
        IOKR(regressor=bad).fit(X, Y)


@pytest.mark.parametrize("bad", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_a_classifier_is_no_regressor(bad):
    with pytest.raises(TypeError, match="is a classifier"):
        OEL(regressor=bad).fit(X, Y)


@pytest.mark.parametrize("options", [{"input_kernel": Gaussian(1.0)}, {"input_landmarks": 5}])
@pytest.mark.parametrize("Estimator", [IOKR, KDE, OEL])
def test_a_regressor_leaves_no_place_for_an_input_kernel(Estimator, options):
    with pytest.raises(ValueError, match=f"regressor replaces {next(iter(options))}"):
        Estimator(regressor=Ridge(), **options).fit(X, Y)


@pytest.mark.parametrize("row", [[np.nan] * 4, [np.inf, 0, 0, 0]])
def test_predictions_that_are_not_finite(row):
    with pytest.raises(ValueError, match=r"(?s)regressor = Odd\(.*\) predicted values that are not finite"):
        OEL(output_kernel=Linear(), regressor=Odd(row)).fit(X, Y)
    model = IOKR(output_kernel=Linear(), regressor=Odd(row)).fit(X, Y)  # which looks at no prediction
    with pytest.raises(ValueError, match=r"(?s)regressor = Odd\(.*\) predicted values that are not finite"):
        model.predict(X)


@pytest.mark.parametrize("row", [0.0, [0.0, 0.0], [[0.0] * 4]])
def test_predictions_of_a_wrong_shape(row):
    with pytest.raises(ValueError, match=r"(?s)regressor = Odd\(.*\) must predict .* \(40, 4\); got shape \(40"):
        OEL(output_kernel=Linear(), regressor=Odd(row)).fit(X, Y)
    with pytest.raises(ValueError, match=r"(?s)regressor = Odd\(.*\) must predict"):
        IOKR(output_kernel=Linear(), regressor=Odd(row)).fit(X, Y).embed(X)


def test_a_regressor_of_one_target_is_told_what_to_do():
    with pytest.raises(ValueError) as caught:
        IOKR(output_kernel=Linear(), regressor=SVR()).fit(X, Y)
    assert "regressor = SVR()" in caught.value.__notes__[0] and "MultiOutputRegressor" in caught.value.__notes__[0]


def test_a_regressor_that_predicts_nothing_leaves_no_direction():
    with pytest.warns(UserWarning, match="n_components=2 exceeds the rank"):
        model = OEL(output_kernel=Linear(), n_components=2, supervision=1.0, regressor=Odd([0.0] * 4)).fit(X, Y)
    assert model.n_components_ == 0 and len(model.predict(X)) == N


def test_inputs_that_do_not_suit():
    model = OEL(output_kernel=Gaussian(0.3), regressor=Ridge())
    with pytest.raises(ValueError, match="X has 40, y has 39"):
        model.fit(X, Y[:39])
    with pytest.raises(ValueError, match="X is empty"):
        model.fit(X[:0], Y[:0])
    with pytest.raises(TypeError, match="X must be an array or a sequence"):
        model.fit("red green", Y)
    with pytest.raises(ValueError, match=r"(?s)at least 2 pairs.*supervision=0"):
        model.fit(X[:1], Y[:1])
    assert len(clone(model).set_params(supervision=0.0).fit(X[:1], Y[:1]).predict(X[:1])) == 1
    with pytest.raises(ValueError, match="length zero"):
        clone(model).set_params(output_kernel=Linear()).fit(X, 0 * Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but OEL is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="X is empty"):
        model.predict(X[:0])


def test_a_failed_fit_changes_nothing():
    model = OEL(output_kernel=Linear(), regressor=Ridge()).fit(X, Y)
    before = model.embed(X)
    with pytest.raises(ValueError):
        model.set_params(regressor=Odd([np.nan] * 4)).fit(X[:, :2], Y)
    np.testing.assert_array_equal(model.embed(X), before)


def test_a_model_with_a_regressor_is_not_saved(tmp_path):
    model = IOKR(output_kernel=Linear(), regressor=Ridge()).fit(X, Y)
    for regressor in (Ridge(), None):
        with pytest.raises(TypeError, match=r"(?s)regressor cannot be saved without pickle.*joblib\.dump"):
            save_model(model.set_params(regressor=regressor), tmp_path / "m")
    assert not (tmp_path / "m").exists()
