"""Dask collections in, the same estimators, the same answers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from psilearn import IOKR, KDE, OEL, Landmarks, load_model, save_model
from psilearn.kernels import Aligned, Gaussian, Linear
from tests.dask_data import to_dask
from tests.problems import KINDS, make

da = pytest.importorskip("dask.array")
SIZES = {40: (13, 20, 7), 30: (11, 19), 15: (6, 9), 25: (10, 15)}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def dask_of(A):
    return to_dask(A, SIZES[A.shape[0] if hasattr(A, "shape") else len(A)])


def assert_equal_models(model, other, X):
    """The same landmarks and candidates; embeddings, moments and distances equal up to rounding."""
    for a, b in (
        (model.regression_.anchors, other.regression_.anchors),
        (model.embedding_.landmarks, other.embedding_.landmarks),
        (model.candidates_.outputs, other.candidates_.outputs),
    ):
        assert sparse.issparse(a) == sparse.issparse(b) and type(b) in (np.ndarray, list, sparse.csr_matrix)
        np.testing.assert_array_equal(*(part.toarray() if sparse.issparse(part) else part for part in (a, b)))
    Z, Z_other = model.embed(np.asarray(X) if hasattr(X, "iloc") else X), other.embed(X)
    signs = np.sign(np.sum(Z * Z_other, axis=0))  # an eigenvector has no sign
    assert np.abs(Z - signs * Z_other).max() <= 1e-12 * np.abs(Z).max()
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=0, atol=1e-12)
    assert other.approximation_error_ == pytest.approx(model.approximation_error_, abs=1e-12)
    assert other.input_approximation_error_ == pytest.approx(model.input_approximation_error_, abs=1e-12)


def estimators(kernel=None):
    landmarks = {"input_landmarks": 12, "output_landmarks": 10, "alpha": 0.1}
    return {
        "IOKR": IOKR(Gaussian(0.2), kernel, **landmarks),
        "KDE": KDE(Gaussian(0.2), kernel, n_components=3, **landmarks),
        "OEL": OEL(Gaussian(0.2), kernel, n_components=3, supervision=0.4, **landmarks),
    }


@pytest.mark.parametrize("name", ["IOKR", "KDE", "OEL"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_outputs(kind, name):
    problem = make(kind)
    model = estimators(problem.kernel)[name]
    expected = clone(model).fit(problem.X, problem.Y, unlabeled=iter([problem.unlabeled]))
    found = model.fit(dask_of(problem.X), dask_of(problem.Y), unlabeled=dask_of(problem.unlabeled))
    assert_equal_models(expected, found, problem.X_test)


@pytest.mark.parametrize("kind", ["vectors", "numbers", "tags", "sparse tags", "rankings"])
def test_the_default_kernels_are_chosen_from_all_chunks(kind):
    problem = make(kind)
    model = OEL(alpha=0.1, n_components=3, input_landmarks=12, output_landmarks=10)
    expected = clone(model).fit(problem.X, problem.Y)
    found = model.fit(dask_of(problem.X), dask_of(problem.Y))
    assert repr(found.output_kernel_) == repr(expected.output_kernel_)
    assert vars(found.output_kernel_) == vars(expected.output_kernel_)  # the median width too
    assert_equal_models(expected, found, problem.X_test)


def test_one_chunk_that_is_not_of_zeros_and_ones_decides_the_kernel():
    Y = np.vstack([np.eye(4), [[0.5, 0, 1, 0]]])
    X = np.arange(5.0).reshape(-1, 1)
    fitted = IOKR(input_landmarks=3, output_landmarks=3).fit(to_dask(X, (4, 1)), to_dask(Y, (4, 1)))
    assert isinstance(fitted.output_kernel_, Gaussian)


@pytest.mark.parametrize("method", ["uniform", "kmeans++", "leverage", "pivoted"])
def test_landmarks_are_those_of_one_machine(method):
    problem = make("vectors")
    landmarks = {"input_landmarks": Landmarks(12, method), "output_landmarks": Landmarks(10, method)}
    model = OEL(Gaussian(0.2), Gaussian(0.3), alpha=0.1, n_components=3, **landmarks)
    expected = clone(model).fit(problem.X, problem.Y)
    assert_equal_models(expected, model.fit(dask_of(problem.X), dask_of(problem.Y)), problem.X_test)


@pytest.mark.parametrize(("method", "n_passes"), [("uniform", 2), ("pivoted", 3), ("leverage", 4), ("kmeans++", 3)])
def test_the_data_are_read_as_often_as_the_documentation_states(method, n_passes):
    rng = np.random.default_rng(0)
    read = {"X": 0, "y": 0}

    def counted(name, columns):
        def count(block):
            read[name] += len(block)
            return block

        rows = da.from_array(rng.standard_normal((1000, columns)), chunks=(100, -1))
        return rows.map_blocks(count, dtype=float, meta=np.empty((0, columns)))

    model = OEL(Gaussian(0.1), Gaussian(0.3), n_components=5, output_landmarks=30)
    model.set_params(input_landmarks=Landmarks(50, method)).fit(counted("X", 5), counted("y", 3))
    assert read["X"] <= n_passes * 1000 and read["X"] > 0.8 * n_passes * 1000 and read["y"] <= 5000


def test_sparse_inputs():
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix((rng.random((40, 30)) < 0.2) * rng.standard_normal((40, 30)))
    problem = make("sparse tags")
    model = OEL(Linear(), alpha=0.1, n_components=3, input_landmarks=12, output_landmarks=10)
    expected = clone(model).fit(X, problem.Y)
    found = model.fit(dask_of(X), dask_of(problem.Y))
    assert_equal_models(expected, found, X[:9])
    predicted = found.predict(to_dask(X[:9], (4, 5)))
    assert predicted.shape == (9, 6)
    np.testing.assert_array_equal(predicted.compute().toarray(), expected.predict(X[:9]).toarray())


def test_the_schedule_does_not_change_a_bit():
    import dask

    problem = make("vectors")
    models = []
    for scheduler, workers in (("synchronous", 1), ("threads", 2), ("threads", 4)):
        with dask.config.set(scheduler=scheduler, num_workers=workers):
            model = clone(estimators()["OEL"]).fit(dask_of(problem.X), dask_of(problem.Y), dask_of(problem.unlabeled))
        models.append(model)
    for other in models[1:]:
        assert np.array_equal(other.embed(problem.X_test), models[0].embed(problem.X_test))
        assert np.array_equal(other.eigenvalues_, models[0].eigenvalues_)


def test_single_precision_and_torch():
    problem = make("vectors")
    model = clone(estimators()["OEL"]).set_params(dtype="float32")
    expected = clone(model).fit(problem.X, problem.Y)
    found = clone(model).fit(dask_of(problem.X), dask_of(problem.Y))
    np.testing.assert_allclose(np.abs(found.embed(problem.X_test)), np.abs(expected.embed(problem.X_test)), atol=1e-4)
    assert found.embed(dask_of(problem.X_test)).dtype == np.float32
    pytest.importorskip("torch")
    model.set_params(dtype="float64", device="cpu")
    expected = clone(model).fit(problem.X, problem.Y, unlabeled=iter([problem.unlabeled]))
    found = model.fit(dask_of(problem.X), dask_of(problem.Y), unlabeled=dask_of(problem.unlabeled))
    assert_equal_models(expected, found, problem.X_test)


def test_unlabeled_outputs_alone_may_be_in_chunks():
    problem = make("vectors")
    model = estimators()["OEL"]
    expected = clone(model).fit(problem.X, problem.Y, unlabeled=iter([problem.unlabeled]))
    found = clone(model).fit(problem.X, problem.Y, unlabeled=dask_of(problem.unlabeled))
    assert_equal_models(expected, found, problem.X_test)
    expected.partial_fit(iter([problem.candidates]))
    found.partial_fit(dask_of(problem.candidates))
    assert_equal_models(expected, found, problem.X_test)
    in_memory = clone(model).fit(dask_of(problem.X), dask_of(problem.Y), unlabeled=problem.unlabeled)
    assert_equal_models(clone(model).fit(problem.X, problem.Y, unlabeled=problem.unlabeled), in_memory, problem.X_test)


@pytest.mark.parametrize("kind", ["vectors", "numbers", "sparse tags", "rankings", "strings"])
def test_predictions_are_lazy_and_the_same(kind):
    problem = make(kind)
    model = estimators(problem.kernel)["OEL"].fit(problem.X, problem.Y)
    X = dask_of(problem.X_test)
    touched = []
    X = X.map_blocks(lambda block: touched.append(len(block)) or block, dtype=float, meta=np.empty((0, 3)))
    Z, predicted, top = model.embed(X), model.predict(X), model.predict_topk(X, 3, "known")
    g = model.transform_outputs(dask_of(problem.candidates))
    given = model.predict(X, problem.candidates)
    assert touched == [] and Z.chunks == ((6, 9), (3,)) and predicted.chunks[0] == (6, 9)
    np.testing.assert_allclose(Z.compute(), model.embed(problem.X_test), rtol=1e-12)
    np.testing.assert_allclose(g.compute(), model.transform_outputs(problem.candidates), rtol=1e-12)
    expected = model.predict_topk(problem.X_test, 3, "known")
    np.testing.assert_array_equal(top.indices.compute(), expected.indices)
    np.testing.assert_allclose(top.distances.compute(), expected.distances, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(top.margins), expected.margins, rtol=1e-9, atol=1e-12)
    for lazy, eager in (
        (top.nearest, expected.nearest),
        (predicted, model.predict(problem.X_test)),
        (given, model.predict(problem.X_test, problem.candidates)),
    ):
        lazy = lazy.compute()
        assert sparse.issparse(lazy) == sparse.issparse(eager)
        np.testing.assert_array_equal(*(part.toarray() if sparse.issparse(part) else part for part in (lazy, eager)))


def test_candidates_of_single_examples_are_refused():
    problem = make("tags")
    model = estimators()["OEL"].fit(problem.X, problem.Y)
    with pytest.raises(TypeError, match="one set of candidates for all inputs"):
        model.predict(dask_of(problem.X_test), [problem.candidates[:3]] * 15)
    with pytest.raises(TypeError, match="searched by a solver"):
        model.predict_topk(dask_of(problem.X_test), 2, "all")
    np.testing.assert_array_equal(
        model.predict(dask_of(problem.X_test), "all").compute(), model.predict(problem.X_test, "all")
    )


def test_methods_that_would_gather_a_collection_are_refused():
    problem = make("vectors")
    model = estimators()["OEL"].fit(problem.X, problem.Y).calibrate(problem.X, problem.Y)
    X, Y = dask_of(problem.X), dask_of(problem.Y)
    for method, arguments in (
        ("truth_positions", (X, problem.Y)),
        ("rank_candidates", (X,)),
        ("calibrate", (X, problem.Y)),
        ("predict_set", (X,)),
        ("score", (X, problem.Y)),
    ):
        with pytest.raises(TypeError, match=rf"{method} takes X in memory.*give X\.compute\(\)"):
            getattr(model, method)(*arguments)
        if len(arguments) == 2:
            with pytest.raises(TypeError, match=rf"{method} takes y in memory.*give y\.compute\(\)"):
                getattr(model, method)(problem.X, Y)
    for inputs in (problem.X, X):
        with pytest.raises(TypeError, match=r"use candidate_set\(candidates, path\)"):
            model.predict(inputs, Y)


def test_an_index_is_not_sent_to_workers(monkeypatch):
    pytest.importorskip("faiss")
    from psilearn.decoding import ApproximateCandidates
    from psilearn.estimators import dask_inputs

    problem = make("vectors")
    model = estimators()["OEL"].fit(problem.X, problem.Y)
    candidates = ApproximateCandidates.of(model.candidate_set(problem.Y), model.embed(problem.X), verbose=False)
    X = dask_of(problem.X_test)
    np.testing.assert_array_equal(model.predict(X, candidates).compute(), model.predict(problem.X_test, candidates))
    monkeypatch.setattr(dask_inputs, "runs_on_cluster", lambda: True)
    for method in (model.predict, model.predict_topk):
        with pytest.raises(TypeError, match="index of faiss, which cannot be sent to the workers"):
            method(X, candidates=candidates)


def test_without_landmarks_the_bytes_are_stated():
    problem = make("vectors")
    X, Y, U = dask_of(problem.X), dask_of(problem.Y), dask_of(problem.unlabeled)
    with pytest.raises(
        ValueError, match=r"require input_landmarks.*40 inputs X needs 12,800 bytes.*input_landmarks=40"
    ):
        OEL(output_landmarks=5).fit(X, Y)
    with pytest.raises(ValueError, match=r"require output_landmarks.*40 outputs y"):
        OEL(input_landmarks=5).fit(X, Y)
    with pytest.raises(ValueError, match=r"require output_landmarks.*30 unlabeled outputs needs 7,200 bytes"):
        OEL().fit(problem.X, problem.Y, unlabeled=U)
    with pytest.raises(ValueError, match="regressor of scikit-learn needs all inputs in memory"):
        from sklearn.linear_model import Ridge

        OEL(regressor=Ridge(), output_landmarks=5).fit(X, Y)
    with pytest.raises(ValueError, match="learn them from a sample"):
        OEL(Aligned([Linear()], Linear()), input_landmarks=5, output_landmarks=5).fit(X, Y)


def test_misaligned_and_mixed_arguments_are_refused_and_change_nothing():
    problem = make("vectors")
    X, Y = dask_of(problem.X), dask_of(problem.Y)
    model = estimators()["OEL"].fit(problem.X, problem.Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"Type: y = y\.rechunk\(\{0: X\.chunks\[0\]\}\)"):
        model.fit(X, Y.rechunk({0: 10}))
    assert len(Y.rechunk({0: 10}).rechunk({0: X.chunks[0]}).chunks[0]) == 3
    with pytest.raises(TypeError, match=r"X is a Dask collection but y is not"):
        model.fit(X, problem.Y)
    broken = problem.X.copy()
    broken[35, 1] = np.nan
    with pytest.raises(ValueError, match="chunk 2 of X contains NaN"):
        model.fit(dask_of(broken), Y)
    with pytest.raises(ValueError, match=r"chunk 0 of unlabeled must have the same width as y"):
        model.fit(X, Y, unlabeled=da.ones((5, 2)))
    assert vars(model) == before


def test_many_distinct_outputs_leave_a_sample_as_candidates():
    problem = make("vectors")
    model = estimators()["OEL"]
    expected = clone(model).fit(problem.X, problem.Y)
    with (
        config_context(working_memory=0.002),
        pytest.warns(UserWarning, match="default candidates are those of 40 ran"),
    ):
        found = model.fit(dask_of(problem.X), dask_of(problem.Y))
    assert len(found.candidates_) == len(expected.candidates_)  # the sample is larger than these few


def test_data_frames_and_unknown_chunks():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    problem = make("tags")
    frame = dd.from_pandas(pd.DataFrame(problem.X, columns=list("abc")), npartitions=2)
    Y = to_dask(problem.Y, [len(part) for part in frame.partitions])
    model = estimators(problem.kernel)["OEL"]
    expected = clone(model).fit(problem.X, problem.Y)
    found = clone(model).fit(frame, Y)
    assert_equal_models(expected, found, pd.DataFrame(problem.X_test, columns=list("abc")))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert_equal_models(expected, clone(model).fit(frame.to_dask_array(), Y), problem.X_test)
    embedded = found.embed(dd.from_pandas(pd.DataFrame(problem.X_test, columns=list("abc")), npartitions=2))
    np.testing.assert_allclose(np.abs(embedded.compute()), np.abs(expected.embed(problem.X_test)), rtol=1e-9)


def test_a_fitted_model_is_saved_and_cloned_as_ever(tmp_path):
    problem = make("tags")
    model = estimators()["OEL"].fit(dask_of(problem.X), dask_of(problem.Y))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert np.array_equal(loaded.predict(problem.X_test), model.predict(problem.X_test))
    assert repr(clone(model)) == repr(model)
