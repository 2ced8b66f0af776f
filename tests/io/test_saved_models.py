"""Saved models: they predict as before, and loading a file executes nothing."""

import os
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from psilearn import IOKR, IOKRCV, KDE, KDECV, OEL, OELCV, Landmarks, kernels, load_model, save_model
from psilearn.io import check_model_path, read_notes
from psilearn.io.encoding import REGISTRY
from psilearn.io.model_codecs import NOT_SAVED
from psilearn.io.saved_models import FORMAT
from psilearn.kernels import (
    Aligned,
    Dice,
    Gaussian,
    GaussianTanimoto,
    Kemeny,
    Kernel,
    Laplacian,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    uniform,
)
from tests.sealed_files import edit, seal, split

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
TAGS = (RNG.random((30, 6)) < 0.4).astype(np.int8)
BITS = np.packbits(TAGS, axis=1)
ORDERS = ["a>b>c", "b>c>a", "c>b>a", "a>c>b", "b>a>c", "c>a>b"]
LANDMARKS = {"input_landmarks": Landmarks(12, "leverage", np.random.RandomState(0)), "output_landmarks": 9}
SUM = uniform([Linear().normalized(), 2 * Linear() * Linear()])
MODELS = {
    "IOKR, rows and CSR tags": (IOKR(Gaussian(0.3), Dice(), alpha=1e-3), X, sparse.csr_matrix(TAGS)),
    "CSR array inputs": (IOKR(Linear(), Linear(), alpha=1e-3), sparse.csr_array(TAGS.astype(float)), X),
    "KDE with a median width": (KDE(None, GaussianTanimoto("median"), alpha=1e-3, n_components=5), X, TAGS),
    "OEL with landmarks, float32": (
        OEL(Laplacian(), Linear(), alpha=1e-2, n_components=3, supervision=0.5, **LANDMARKS, dtype="float32"),
        X,
        X @ RNG.standard_normal((4, 3)),
    ),
    "dtype as a type": (KDE(Gaussian(0.3), Linear(), alpha=1e-2, n_components=2, dtype=np.float32), X, X),
    "rankings": (
        OEL(Gaussian(0.3), Kemeny(), alpha=1e-3, n_components=4),
        X,
        np.argsort(np.argsort(X, axis=1), axis=1) + 1,
    ),
    "orders": (IOKR(Gaussian(0.3), Kemeny(items=("a", "b", "c")), alpha=1e-3), X[:6], ORDERS),
    "packed bits": (OEL(Polynomial(), GaussianTanimoto(packed=True), alpha=1e-2, n_components=4), X, BITS),
    "precomputed": (IOKR(Precomputed(X @ X.T), Linear(), alpha=1e-2), np.arange(30), X),
    "sums of kernels": (IOKR(Gaussian(0.5, SUM), Linear(), alpha=1e-2), X, X[:, :2]),
    "aligned kernels": (IOKR(Aligned([Gaussian(0.5), Linear()], Linear()), Linear(), alpha=1e-2), X, X[:, :2]),
    "numbers as outputs": (IOKR(Gaussian(0.3), None, alpha=1e-3), X, X[:, 0]),
}


def assert_same_predictions(model, other, inputs):
    first, second = model.predict_topk(inputs, 3), other.predict_topk(inputs, 3)
    np.testing.assert_array_equal(second.indices, first.indices)
    tolerance = 1e-12 if second.distances.dtype == np.float64 else 1e-6  # arrays may have another memory layout
    np.testing.assert_allclose(second.distances, first.distances, rtol=0, atol=tolerance)
    np.testing.assert_allclose(other.embed(inputs), model.embed(inputs), rtol=0, atol=tolerance)
    prediction = other.predict(inputs)
    difference = prediction != model.predict(inputs)
    assert not (difference.nnz if sparse.issparse(prediction) else np.any(difference))


@pytest.mark.parametrize(("model", "inputs", "outputs"), MODELS.values(), ids=MODELS.keys())
def test_a_saved_model_predicts_the_same(tmp_path, model, inputs, outputs):
    model.fit(inputs, outputs)
    model.calibrate(inputs, outputs)
    save_model(model, tmp_path / "m", notes={"of": "tests", "numbers": [1, 2.5]})
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is type(model)
    assert repr(loaded.get_params()) == repr(model.get_params()) or "RandomState" in repr(model.get_params())
    assert_same_predictions(model, loaded, inputs)
    assert loaded.embedding_.fingerprint == model.embedding_.fingerprint
    assert loaded.embedding_ is loaded.candidates_.embedding
    np.testing.assert_array_equal(loaded.predict_set(inputs).sizes, model.predict_set(inputs).sizes)
    assert read_notes(tmp_path / "m") == {"of": "tests", "numbers": [1, 2.5]}
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted == {name for name in vars(loaded) if name.endswith("_")}
    for name in ("n_features_in_", "n_components_", "approximation_error_", "input_approximation_error_"):
        assert getattr(loaded, name, None) == getattr(model, name, None)
    np.testing.assert_array_equal(loaded.eigenvalues_, model.eigenvalues_)


def test_a_loaded_model_can_be_saved_again(tmp_path):
    save_model(OEL(Gaussian(0.3), Linear(), alpha=1e-3, n_components=2).fit(X, X), tmp_path / "a")
    save_model(load_model(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("dtype", [np.float32, float, np.dtype(np.float64), "float32"])
def test_any_precision_can_be_saved(tmp_path, dtype):
    save_model(IOKR(Gaussian(0.3), Linear(), alpha=1e-3, dtype=dtype).fit(X, X), tmp_path / "m")
    assert load_model(tmp_path / "m").dtype == dtype


def test_names_of_columns_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model = IOKR(Gaussian(0.3), Linear(), alpha=1e-3).fit(table, X)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table[["d", "c", "b", "a"]])


@pytest.mark.filterwarnings("ignore:The best")
@pytest.mark.parametrize("search", [IOKRCV, KDECV, OELCV])
def test_the_best_estimator_of_a_search_is_saved(tmp_path, search):
    search = search(Gaussian(0.3), Linear(), alphas=[1e-3, 1e-2], cv=2, random_state=0)
    with pytest.raises(ValueError, match="no best estimator to save"):
        save_model(search, tmp_path / "m")
    save_model(search.fit(X, X[:, :2]), tmp_path / "m")
    assert_same_predictions(search.best_estimator_, load_model(tmp_path / "m"), X)
    with pytest.raises(ValueError, match="refit=True"):
        save_model(search.set_params(refit=False).fit(X, X[:, :2]), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_search_of_scikit_learn_is_saved(tmp_path):
    search = GridSearchCV(IOKR(Gaussian(0.3), Linear()), {"alpha": [1e-3, 1e-2]}, cv=2).fit(X, X)
    save_model(search, tmp_path / "m")
    assert load_model(tmp_path / "m").alpha == search.best_params_["alpha"]


def saved(tmp_path):
    model = OEL(Gaussian(0.3), Linear(), alpha=1e-3, n_components=2).fit(X, X)
    save_model(model, tmp_path / "m")
    return tmp_path / "m"


def test_a_saved_model_is_one_safetensors_file(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    path = saved(tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    arrays = FORMAT.read(path).arrays
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["format"] == "psilearn.model"
        assert set(file.keys()) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(file.get_tensor(name), array)


@pytest.mark.parametrize("mapped", [False, True])
def test_large_arrays_are_mapped_on_request(tmp_path, mapped):
    model = load_model(saved(tmp_path), mapped=mapped)
    assert model.regression_.coefficients.flags.writeable != mapped
    assert_same_predictions(load_model(tmp_path / "m"), model, X)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("executed",))


def test_a_pickle_is_rejected(tmp_path):
    (tmp_path / "m").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="not a saved model that can be used"):
        load_model(tmp_path / "m")


def change_parameter(**changes):
    return lambda m: m["model"]["state"].update(changes)


def change_kernel(**changes):
    return lambda m: m["model"]["state"]["input_kernel"].update(changes)


def change_regression(**changes):
    return lambda m: m["model"]["state"]["regression_"]["state"].update(changes)


def change_candidates(**changes):
    return lambda m: m["model"]["state"]["candidates_"]["state"].update(changes)


@pytest.mark.parametrize(
    "change",
    [
        change_kernel(kind="psilearn.kernels.Pairwise", state={"function": "os.system"}),
        change_kernel(kind="os.system"),
        change_kernel(kind="psilearn.kernels.Kernel"),
        change_kernel(kind=["psilearn.kernels.Gaussian"]),
        lambda m: m["model"]["state"]["input_kernel"]["state"].update(_returns_new_block=False),
        lambda m: m["model"]["state"]["input_kernel"]["state"].update(__class__=1),
        lambda m: m["model"]["state"]["input_kernel"]["state"].pop("gamma"),
        lambda m: m["model"].update(kind="subprocess.Popen"),
        lambda m: m["model"].update(kind="psilearn.Landmarks", state={"n": 1, "method": "", "random_state": 0}),
        lambda m: m.update(model=None),
        change_parameter(predict="x"),
        change_parameter(_continuation=1),
        change_parameter(embedding_=None),
        change_parameter(regressor=1),
        change_parameter(calibration_scores_="abc"),
        change_parameter(eigenvalues_=None),
        change_parameter(n_components_=7),
        change_parameter(n_components_=2.0),
        change_parameter(n_features_in_="4"),
        change_parameter(output_kernel_=None),
        change_parameter(candidates_={"kind": "pathlib.Path", "state": {}}),
        change_parameter(regression_={"kind": "reference", "id": 99}),
        lambda m: m["model"]["state"].pop("embedding_"),
        lambda m: m["model"]["state"].pop("regression_"),
        lambda m: m["model"]["state"].pop("alpha"),
        change_regression(kernel=None),
        change_regression(triangle={"kind": "array", "rows": "array000"}),
        change_regression(anchors={"kind": "list", "items": []}),
        change_regression(anchors=None),
        change_regression(coefficients={"kind": "array", "rows": "../other"}),
        change_regression(coefficients={"kind": "array", "rows": "/etc/passwd"}),
        change_regression(coefficients={"kind": "array", "rows": "__metadata__"}),
        change_regression(coefficients={"kind": "array", "rows": 7}),
        change_regression(coefficients={"kind": "array", "rows": ["array000"]}),
        change_regression(coefficients={"unknown": 7}),
        change_regression(coefficients=[1, 2]),
        change_regression(coefficients={}),
        change_regression(moment={"kind": "float", "value": "1"}),
        change_regression(unknown=1),
        change_candidates(squared_norms={"kind": "array", "rows": "array000"}),
        change_candidates(embedding=None),
        change_candidates(outputs={"kind": "list", "items": [1]}),
        lambda m: m["model"].update(state=[]),
        lambda m: m.pop("model"),
        lambda m: m.pop("notes"),
    ],
)
def test_changed_contents_are_rejected(tmp_path, change):
    path = saved(tmp_path)
    edit(FORMAT, path, lambda content, _: [change(content), content][1])
    with pytest.raises(ValueError, match="not a saved model that can be used") as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_every_changed_byte_is_detected(tmp_path):
    path = saved(tmp_path)
    whole = path.read_bytes()
    for i in (*range(700), *range(700, len(whole), 7)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(ValueError, match=str(path)):
            load_model(path)
    for content in (whole[:-1], whole + b"x", b"", whole[:8], whole[:300]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=str(path)):
            load_model(path)


@pytest.mark.parametrize(
    "header", [{}, {"__metadata__": []}, {"__metadata__": {"format": "other"}}, {"__metadata__": {}}, [], 7]
)
def test_a_file_that_is_not_a_saved_model(tmp_path, header):
    (tmp_path / "m").write_bytes(seal(header, b"") if isinstance(header, dict) else b"\x01" + bytes(7) + b"7")
    for function in (load_model, read_notes):
        with pytest.raises(ValueError, match=r"m (is not|contains .*not) a saved model"):
            function(tmp_path / "m")


def test_a_folder_is_not_a_saved_model(tmp_path):
    for function in (load_model, read_notes):
        with pytest.raises(ValueError, match="a folder"):
            function(tmp_path)


def test_models_of_other_versions_are_rejected(tmp_path):
    path = saved(tmp_path)
    header, data = split(path)
    header["__metadata__"]["version"] = "99"
    path.write_bytes(seal(header, data))
    with pytest.raises(ValueError, match=r"has version 99 .* reads version 1\. Fit the model and save it again"):
        load_model(path)


class Mine(IOKR):
    pass


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_model(OEL(), tmp_path / "m")
    with pytest.raises(TypeError, match="Only IOKR, KDE, OEL"):
        save_model(Linear(), tmp_path / "m")
    with pytest.raises(TypeError, match="Only"):
        save_model(Mine(Gaussian(1.0), Linear()).fit(X, X), tmp_path / "m")
    with pytest.raises(TypeError, match=r"input_kernel.*without pickle"):
        save_model(IOKR(Pairwise(lambda a, b: float(a @ b)), Linear()).fit(X, X), tmp_path / "m")
    with pytest.raises(TypeError, match="without pickle"):
        save_model(IOKR(Linear(), Pairwise(lambda a, b: float(a == b))).fit(X[:2], [{1}, {2}]), tmp_path / "m")
    model = IOKR(Gaussian(0.3), Linear(), alpha=1e-3).fit(X, X)
    for notes in ({"a": object()}, {"a": float("nan")}, [1]):
        with pytest.raises(TypeError, match="notes must be"):
            save_model(model, tmp_path / "m", notes=notes)
    with pytest.raises(TypeError, match=r"regressor.*joblib"):
        save_model(IOKR(None, Linear(), regressor=Ridge()).fit(X, X), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_damaged_notes_are_rejected(tmp_path):
    path = saved(tmp_path)
    assert read_notes(path) == {}
    edit(FORMAT, path, lambda content, _: {**content, "notes": [1]})
    with pytest.raises(ValueError, match="notes are damaged"):
        read_notes(path)


def test_files_are_not_overwritten(tmp_path):
    path = saved(tmp_path)
    model = IOKR(Gaussian(1.0), Linear()).fit(X, X)
    with pytest.raises(FileExistsError, match="already contains"):
        save_model(model, path)
    (tmp_path / "thesis").write_text("x")
    (tmp_path / "link").symlink_to(path)
    for other in (tmp_path, tmp_path / "thesis", tmp_path / "link"):
        for overwrite in (False, True):
            with pytest.raises(FileExistsError, match=str(other)):
                save_model(model, other, overwrite=overwrite)
    assert (tmp_path / "thesis").read_text() == "x"
    with pytest.raises(OSError, match="thesis"):
        check_model_path(tmp_path / "thesis" / "m")
    with pytest.raises(FileNotFoundError, match="absent"):
        load_model(tmp_path / "absent")


def test_a_loaded_model_cannot_continue(tmp_path):
    model = OEL(Gaussian(1.0), Gaussian(1.0), n_components=2, output_landmarks=4).fit(X, X)
    save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match="or was loaded: saved models do not keep what partial_fit needs"):
        load_model(tmp_path / "m").partial_fit(X)


def test_an_interrupted_save_can_be_repeated(tmp_path, monkeypatch):
    model = IOKR(Gaussian(1.0), Linear()).fit(X, X)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_model(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())
    save_model(model, tmp_path / "m")
    assert_same_predictions(model, load_model(tmp_path / "m"), X)


def test_a_loaded_model_cannot_be_updated(tmp_path):
    model = OEL(Gaussian(0.3), Linear(), alpha=1e-3, n_components=2, output_landmarks=5).fit(X, X)
    save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match="fit it again"):
        load_model(tmp_path / "m").partial_fit(X)


def test_every_kernel_without_functions_is_registered():
    classes = {getattr(kernels, name) for name in kernels.__all__ if isinstance(getattr(kernels, name), type)}
    for cls in classes:
        codec = REGISTRY.find(cls)
        is_saved = cls not in NOT_SAVED and issubclass(cls, Kernel | kernels.Hierarchy)  # the parameter of a kernel
        assert (codec is not None) == is_saved
        assert codec is None or codec.kind == f"psilearn.kernels.{cls.__name__}"


def test_a_model_is_replaced(tmp_path):
    first, second = (IOKR(Gaussian(gamma), Linear(), alpha=1e-3).fit(X, X) for gamma in (0.3, 0.8))
    save_model(first, tmp_path / "m")
    with pytest.raises(FileExistsError, match="pass overwrite=True to replace it"):
        save_model(second, tmp_path / "m")
    assert_same_predictions(first, load_model(tmp_path / "m"), X)
    save_model(second, tmp_path / "m", overwrite=True, notes={"model": 2})
    assert_same_predictions(second, load_model(tmp_path / "m"), X)
    assert read_notes(tmp_path / "m") == {"model": 2}
    with pytest.raises(ValueError, match="overwrite must be True or False"):
        save_model(second, tmp_path / "m", overwrite="yes")


@pytest.mark.parametrize("change", ["indices", "indptr", "data", "shape", "order"])
def test_tampered_csr_matrices_are_rejected(tmp_path, change):
    model = IOKR(Linear(), Linear(), alpha=1e-3).fit(sparse.csr_matrix(TAGS.astype(float)), X)
    save_model(model, tmp_path / "m")

    def tamper(content, arrays):
        csr = content["model"]["state"]["regression_"]["state"]["anchors"]
        if change == "shape":
            csr["shape"] = [30, 2]
            return
        array = arrays[csr["indptr" if change == "order" else change]]
        if change == "order":
            array[1:-1] = array[-2:0:-1].copy()
        elif change == "data":
            array[0] = np.nan
        else:
            array[-1] = 2_000_000_000

    edit(FORMAT, tmp_path / "m", tamper)
    with pytest.raises(ValueError, match="not a saved model that can be used"):
        load_model(tmp_path / "m")


def test_values_that_are_not_finite_are_rejected(tmp_path):
    path = saved(tmp_path)

    def tamper(content, arrays):
        (name,) = (content["model"]["state"]["regression_"]["state"]["coefficients"][key] for key in ("rows",))
        arrays[name][:] = np.nan

    edit(FORMAT, path, tamper)
    with pytest.raises(ValueError, match="not those of a fitted model"):
        load_model(path)


def test_a_model_of_outputs_without_variation_can_be_loaded(tmp_path):
    model = OEL(Gaussian(0.3), Linear(), alpha=1e-3).fit(X, np.zeros((30, 2)))
    save_model(model, tmp_path / "m")
    assert_same_predictions(model, load_model(tmp_path / "m"), X)


def test_a_tensor_is_that_of_one_array(tmp_path):
    path = saved(tmp_path)
    repeated = {"kind": "list", "items": [{"kind": "array", "rows": "array000"}] * 1000}
    edit(FORMAT, path, lambda content, _: content["model"]["state"].update(verbose=repeated))
    with pytest.raises(ValueError, match="'array000' is not an array of the file, or is used twice"):
        load_model(path)


def test_a_kernel_with_shared_parts_is_limited_in_size(tmp_path):
    path = saved(tmp_path)

    def tamper(content, depth):
        kernel = content["model"]["state"]["output_kernel_"]
        for i in range(1001, 1001 + depth):  # 2^depth kernels, if each part is counted as often as it occurs
            parts = {"left": kernel, "right": {"kind": "reference", "id": kernel["id"]}}
            kernel = {"kind": "psilearn.kernels.Sum", "state": parts, "id": i}
        content["model"]["state"]["output_kernel_"] = kernel

    edit(FORMAT, path, lambda content, _: tamper(content, 10))
    with pytest.raises(ValueError, match=r"not those of a fitted model \(.*output_kernel_"):
        load_model(path)
    edit(FORMAT, path, lambda content, _: tamper(content, 59))
    with pytest.raises(ValueError, match="its references repeat its values"):
        load_model(path)
