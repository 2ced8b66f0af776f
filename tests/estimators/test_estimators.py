"""scikit-learn's contract, and outputs of every form."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilearn import IOKR, KDE, OEL
from psilearn._utils.samples import n_samples
from psilearn.kernels import Dice, Gaussian, Precomputed
from psilearn.metrics import f1_score, kernel_loss
from tests.problems import block, make

pytestmark = pytest.mark.usefixtures("backend")

KERNEL_X = Gaussian(0.5)


@parametrize_with_checks(
    [
        IOKR(),
        KDE(),
        OEL(),
        OEL(n_components=2, supervision=1.0),
        IOKR(input_landmarks=10, output_landmarks=10),
        IOKR(dtype="float32"),
        OEL(input_landmarks=10),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def takes_outputs_alone(estimator):
    checks = ("check_n_features_in_after_fitting", "check_fit_score_takes_y")
    return dict.fromkeys(checks, "partial_fit takes unlabeled outputs, not pairs")


@parametrize_with_checks([OEL(input_landmarks=10, output_landmarks=10)], expected_failed_checks=takes_outputs_alone)
def test_scikit_learn_contract_with_partial_fit(estimator, check):
    check(estimator)


def test_prediction_comes_in_the_form_of_the_outputs(problem):
    model = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=3).fit(problem.X, problem.Y, problem.unlabeled)
    prediction = model.predict(problem.X_test)
    assert type(prediction) is type(problem.Y)
    assert n_samples(prediction) == 15
    if hasattr(problem.Y, "shape"):
        assert prediction.dtype == problem.Y.dtype
        assert prediction.shape[1:] == problem.Y.shape[1:]
    outputs = model.predict_topk(problem.X_test, k=2).outputs
    assert len(outputs) == 15 and all(type(two) is type(problem.Y) and n_samples(two) == 2 for two in outputs)


def test_shapes_of_the_embeddings(problem):
    model = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=3).fit(problem.X, problem.Y)
    assert model.n_components_ == 3 and model.eigenvalues_.shape == (3,)
    assert model.embed(problem.X_test).shape == (15, 3)
    assert model.transform_outputs(problem.candidates).shape == (25, 3)
    assert (np.diff(model.eigenvalues_) <= 0).all()


def test_score_is_minus_the_mean_loss(problem):
    model = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=3).fit(problem.X, problem.Y)
    loss = kernel_loss(problem.Y, model.predict(problem.X), model.output_kernel_)
    assert model.score(problem.X, problem.Y) == pytest.approx(-float(loss))


def test_sparse_and_dense_give_the_same_answer():
    dense, csr = make("tags"), make("sparse tags")
    X = np.abs(dense.X) * (dense.X > 0)
    a = OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4, supervision=0.3).fit(X, dense.Y, dense.unlabeled)
    b = OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4, supervision=0.3).fit(
        sparse.csr_matrix(X), csr.Y, csr.unlabeled
    )
    np.testing.assert_allclose(a.embed(X), b.embed(sparse.csr_matrix(X)), atol=1e-10)
    np.testing.assert_array_equal(a.predict(X), b.predict(sparse.csr_matrix(X)).toarray())


def test_precomputed_and_direct_kernels_give_the_same_answer():
    problem = make("vectors")
    everything = np.vstack([problem.X, problem.X_test])
    outputs = np.vstack([problem.Y, problem.unlabeled])
    direct = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=4, supervision=0.3).fit(
        problem.X, problem.Y, problem.unlabeled
    )
    by_index = OEL(
        Precomputed(block(KERNEL_X, everything)),
        Precomputed(block(problem.kernel, outputs)),
        alpha=1e-3,
        n_components=4,
        supervision=0.3,
    )
    by_index.fit(np.arange(40), np.arange(40), unlabeled=np.arange(40, 70))
    z, w = direct.embed(problem.X_test), by_index.embed(np.arange(40, 55))
    np.testing.assert_allclose(z @ z.T, w @ w.T, atol=1e-9)
    np.testing.assert_array_equal(direct.predict(problem.X_test), outputs[by_index.predict(np.arange(40, 55))])


def test_a_function_is_a_kernel():
    X = ["aa", "ab", "bb", "ba"] * 3
    model = IOKR(lambda a, b: float(a[0] == b[0]) + float(a == b), lambda a, b: float(a == b), alpha=1e-3)
    model.fit(X, [word[0] for word in X])
    assert model.predict(["ab", "bb"]) == ["a", "b"]


def test_median_width_is_taken_from_the_training_data():
    problem = make("vectors")
    model = OEL().fit(problem.X, problem.Y)
    squared = ((problem.X[:, None] - problem.X[None]) ** 2).sum(axis=2)[np.triu_indices(40, 1)]
    assert model.regression_.kernel.gamma_ == pytest.approx(1 / np.median(squared))
    squared = ((problem.Y[:, None] - problem.Y[None]) ** 2).sum(axis=2)[np.triu_indices(40, 1)]
    model = OEL().fit(problem.X, problem.Y, unlabeled=100 * problem.unlabeled)  # which set no width
    assert model.output_kernel_.gamma_ == pytest.approx(1 / np.median(squared))


def test_clone_and_pickle(problem):
    model = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=3, supervision=0.2)
    assert str(clone(model).get_params()) == str(model.get_params())
    model.fit(problem.X, problem.Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.embed(problem.X_test), model.embed(problem.X_test))
    np.testing.assert_array_equal(
        again.predict_topk(problem.X_test).indices, model.predict_topk(problem.X_test).indices
    )


def test_fit_does_not_change_the_parameters(problem):
    kernel_x = Gaussian()
    OEL(kernel_x, problem.kernel, alpha=1e-3, n_components=3).fit(problem.X, problem.Y)
    assert kernel_x.gamma == "median" and not hasattr(kernel_x, "gamma_")


def test_grid_search_in_a_pipeline_with_nested_names_and_unlabeled_outputs():
    problem = make("tags")
    pipeline = make_pipeline(StandardScaler(), OEL(Gaussian(1.0), Dice(), n_components=4))
    grid = {"oel__input_kernel__gamma": [0.1, 1.0], "oel__supervision": [0.2, 1.0], "oel__alpha": [1e-3]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring=make_scorer(f1_score), error_score="raise")
    search.fit(problem.X, problem.Y, oel__unlabeled=problem.unlabeled)
    assert set(search.cv_results_["param_oel__input_kernel__gamma"]) == {0.1, 1.0}
    assert len(set(search.cv_results_["mean_test_score"])) > 1  # the nested parameters reach the kernel
    best = search.best_estimator_.named_steps["oel"]
    assert set(map(bytes, problem.unlabeled)) <= set(map(bytes, best.candidates_.outputs))


def test_precomputed_kernels_cross_validate():
    problem = make("vectors")
    index = np.arange(40)
    by_index = OEL(
        Precomputed(block(KERNEL_X, problem.X)),
        Precomputed(block(problem.kernel, problem.Y)),
        alpha=1e-3,
        n_components=4,
    )
    direct = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=4)
    np.testing.assert_allclose(
        cross_val_score(by_index, index, index, cv=4), cross_val_score(direct, problem.X, problem.Y, cv=4), atol=1e-9
    )


def test_data_frames_are_taken_and_their_columns_checked(pd):
    problem = make("tags")
    X, Y = pd.DataFrame(problem.X, columns=list("abc")), pd.DataFrame(problem.Y)
    model = OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4).fit(X, Y)
    np.testing.assert_array_equal(model.feature_names_in_, list("abc"))
    expected = OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4).fit(problem.X, problem.Y).predict(problem.X)
    np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


def test_candidates_may_be_lists():
    problem = make("tags")
    model = OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4).fit(problem.X, problem.Y)
    shared = model.predict(problem.X_test, candidates=problem.candidates)
    np.testing.assert_array_equal(model.predict(problem.X_test, candidates=problem.candidates.tolist()), shared)
    own = [problem.candidates.tolist()] * 15
    np.testing.assert_array_equal(model.predict(problem.X_test, candidates=own), shared)
    numbers = IOKR().fit(problem.X, problem.X[:, 0])
    np.testing.assert_array_equal(
        numbers.predict(problem.X_test, candidates=[0.0, 1.0]),
        numbers.predict(problem.X_test, candidates=[[0.0, 1.0]] * 15),
    )


def test_one_training_row_and_constant_outputs_and_duplicate_rows():
    X = np.array([[0.0, 1.0]])
    np.testing.assert_array_equal(OEL().fit(X, [[1.0, 2.0]]).predict(X), [[1.0, 2.0]])
    X = np.random.default_rng(0).standard_normal((12, 2))
    constant = np.ones((12, 3))
    np.testing.assert_array_equal(OEL().fit(X, constant).predict(X), constant)
    doubled = OEL(KERNEL_X, Gaussian(1.0), alpha=1e-3).fit(np.repeat(X, 2, axis=0), np.repeat(X, 2, axis=0))
    once = OEL(KERNEL_X, Gaussian(1.0), alpha=1e-3).fit(X, X)  # n doubles, and so does K_x's spectrum
    np.testing.assert_allclose(doubled.predict_topk(X).distances, once.predict_topk(X).distances, atol=1e-7)


def test_no_unlabeled_outputs_is_an_empty_collection_of_them(problem):
    model = OEL(KERNEL_X, problem.kernel, alpha=1e-3, n_components=3, supervision=0.3)
    without = clone(model).fit(problem.X, problem.Y)
    empty = clone(model).fit(problem.X, problem.Y, unlabeled=problem.unlabeled[:0])
    np.testing.assert_array_equal(without.embed(problem.X_test), empty.embed(problem.X_test))


def test_predictions_keep_the_form_of_y_whatever_the_form_of_the_unlabeled_outputs():
    dense, csr = make("tags"), make("sparse tags")
    mixed = (
        OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4, supervision=0.3)
        .fit(dense.X, dense.Y, csr.unlabeled)
        .predict(dense.X)
    )
    assert isinstance(mixed, np.ndarray)
    np.testing.assert_array_equal(
        mixed,
        OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4, supervision=0.3)
        .fit(dense.X, dense.Y, dense.unlabeled)
        .predict(dense.X),
    )
    assert sparse.issparse(
        OEL(KERNEL_X, Dice(), alpha=1e-3, n_components=4, supervision=0.3)
        .fit(csr.X, csr.Y, dense.unlabeled)
        .predict(csr.X)
    )


def test_refitting_on_other_inputs_forgets_the_old_columns(pd):
    model = OEL(alpha=1e-3).fit(pd.DataFrame(make("tags").X, columns=list("abc")), make("tags").Y)
    model.set_params(input_kernel=Precomputed(np.eye(40))).fit(np.arange(40), make("tags").Y)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")


def test_outputs_of_length_zero():
    # ψ(y) = 0 for every output: nothing to embed, everything at distance 0, the lowest index wins.
    from psilearn.kernels import Linear

    X = np.arange(6.0).reshape(-1, 1)
    model = IOKR(KERNEL_X, Linear()).fit(X, np.zeros((6, 2)))
    assert model.n_components_ == 0
    np.testing.assert_array_equal(model.predict_topk(X, 1, np.zeros((3, 2))).indices[:, 0], 0)
    assert OEL(KERNEL_X, Linear()).fit(X, np.zeros((6, 2))).n_components_ == 0
