"""Models on disk: they predict as before, and a file can execute nothing."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, KDE, OEL, Landmarks, load_model, save_model
from psilearn.chem import ProbabilityProduct, spectrum_kernel
from psilearn.chem.spectra import Spectrum
from psilearn.io import read_notes
from psilearn.kernels import (
    Dice,
    Gaussian,
    GaussianTanimoto,
    Kemeny,
    Laplacian,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    uniform,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
TAGS = (RNG.random((30, 6)) < 0.4).astype(np.int8)
SPECTRA = [
    Spectrum(50 + 9 * RNG.random(6), RNG.random(6) + 0.1, 80.0 + i % 3, "[M+H]+", "C2H6O", "CCO", f"s{i}")
    for i in range(30)
]
MODELS = {
    "iokr, rows and CSR tags": (IOKR(Gaussian(0.3), Dice(), 1e-3), X, sparse.csr_matrix(TAGS)),
    "CSR array inputs": (IOKR(Linear(), Linear(), 1e-3), sparse.csr_array(TAGS.astype(float)), X),
    "kde with a median width": (KDE(None, GaussianTanimoto("median"), 1e-3, 5), X, TAGS),
    "oel with landmarks, float32": (
        OEL(Laplacian(), Linear(), 1e-2, 3, 0.5, Landmarks(12, "leverage"), 9, dtype="float32"),
        X,
        X @ RNG.standard_normal((4, 3)),
    ),
    "rankings": (OEL(Gaussian(0.3), Kemeny(), 1e-3, 4), X, np.argsort(np.argsort(X, axis=1), axis=1) + 1),
    "orders": (
        IOKR(Gaussian(0.3), Kemeny(items=("a", "b", "c")), 1e-3),
        X[:6],
        ["a>b>c", "b>c>a", "c>b>a", "a>c>b", "b>a>c", "c>a>b"],
    ),
    "packed bits": (OEL(Polynomial(), GaussianTanimoto(packed=True), 1e-2, 4), X, np.packbits(TAGS, axis=1)),
    "precomputed": (IOKR(Precomputed(X @ X.T), Linear(), 1e-2), np.arange(30), X),
    "spectra": (OEL(spectrum_kernel(), GaussianTanimoto(packed=True), 1e-3, 5), SPECTRA, np.packbits(TAGS, axis=1)),
    "sums of kernels": (
        IOKR(Gaussian(0.5, uniform([Linear().normalized(), 2 * Linear() * Linear()])), Linear(), 1e-2),
        X,
        X[:, :2],
    ),
    "numbers as outputs": (IOKR(Gaussian(0.3), None, 1e-3), X, X[:, 0]),
}


@pytest.mark.parametrize(("model", "inputs", "outputs"), MODELS.values(), ids=MODELS.keys())
def test_a_saved_model_predicts_the_same(tmp_path, model, inputs, outputs):
    model.fit(inputs, outputs)
    model.calibrate(inputs, outputs)
    save_model(model, tmp_path / "m", notes={"of": "tests", "numbers": [1, 2.5]})
    again = load_model(tmp_path / "m")
    assert type(again) is type(model)
    assert repr(again.get_params()) == repr(model.get_params()) or "random_state" in repr(model)
    top, other = model.predict_topk(inputs, 3), again.predict_topk(inputs, 3)
    np.testing.assert_array_equal(other.indices, top.indices)
    np.testing.assert_allclose(other.distances, top.distances, rtol=0, atol=1e-12)  # arrays may lie in memory otherwise
    np.testing.assert_allclose(again.embed(inputs), model.embed(inputs), rtol=0, atol=1e-12)
    assert again.embedding_.fingerprint == model.embedding_.fingerprint
    np.testing.assert_array_equal(again.predict_set(inputs).sizes, model.predict_set(inputs).sizes)
    prediction = again.predict(inputs)
    same = prediction != model.predict(inputs)
    assert not (same.nnz if sparse.issparse(prediction) else np.any(same))
    assert read_notes(tmp_path / "m") == {"of": "tests", "numbers": [1, 2.5]}
    if hasattr(model, "n_features_in_"):
        assert again.n_features_in_ == model.n_features_in_


def saved(tmp_path):
    model = OEL(Gaussian(0.3), Linear(), 1e-3, 2).fit(X, X)
    save_model(model, tmp_path / "m")
    return tmp_path / "m", json.loads((tmp_path / "m" / "manifest.json").read_text())


def test_no_file_is_a_pickle(tmp_path):
    path, _ = saved(tmp_path)
    assert {file.suffix for file in path.iterdir()} == {".json", ".npy"}
    for file in path.glob("*.npy"):
        np.load(file, allow_pickle=False)


def test_an_array_that_would_be_unpickled_is_refused(tmp_path):
    path, _ = saved(tmp_path)

    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("executed",))

    victim = next(path.glob("*.npy"))
    np.save(victim, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="no model that can be used"):
        load_model(path)
    victim.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="no model that can be used"):
        load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["state"]["input_kernel"].update(object="Pairwise", state={"function": "os.system"}),
        lambda m: m["state"]["input_kernel"].update(object="os.system"),
        lambda m: m["state"]["input_kernel"].update(object="Kernel"),
        lambda m: m["state"]["input_kernel"]["state"].update(_makes_blocks=False),
        lambda m: m["state"]["input_kernel"]["state"].pop("gamma"),
        lambda m: m.update(estimator="Popen"),
        lambda m: m["state"].update(predict="x"),
        lambda m: m["state"].pop("embedding_"),
        lambda m: m["state"].update(embedding_=None),
        lambda m: m["state"].update(calibration_scores_="abc"),
        lambda m: m["state"].update(n_components_=7),
        lambda m: m["state"].update(input_kernel_=None),
        lambda m: m["state"].pop("alpha"),
        lambda m: m["state"].update(dual_coef_={"array": "../other.npy"}),
        lambda m: m["state"].update(dual_coef_={"array": "/etc/passwd"}),
        lambda m: m["state"].update(dual_coef_={"array": 7}),
        lambda m: m["state"].update(dual_coef_={"unknown": 7}),
        lambda m: m["state"].update(dual_coef_=[1, 2]),
        lambda m: m["state"].update(dual_coef_={}),
        lambda m: m["state"].update(candidates_={"record": "Path", "state": {}}),
        lambda m: m.update(state=[]),
        lambda m: m.pop("state"),
    ],
)
def test_a_manifest_names_nothing_but_models(tmp_path, change):
    path, manifest = saved(tmp_path)
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="no model that can be used"):
        load_model(path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"format": "other", "version": 1}', '{"format": "psilearn.model"}']
)
def test_what_is_no_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest|reads psilearn"):
        load_model(tmp_path)


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_model(OEL(), tmp_path / "m")
    with pytest.raises(TypeError, match="Only IOKR, KDE, OEL"):
        save_model(Linear(), tmp_path / "m")

    class Mine(IOKR):
        pass

    with pytest.raises(TypeError, match="Only"):
        save_model(Mine(Gaussian(1.0), Linear()).fit(X, X), tmp_path / "m")
    with pytest.raises(TypeError, match=r"input_kernel.*without pickle"):
        save_model(IOKR(Pairwise(lambda a, b: float(a @ b)), Linear()).fit(X, X), tmp_path / "m")
    with pytest.raises(TypeError, match=r"complex|without pickle"):
        save_model(IOKR(Linear(), Pairwise(lambda a, b: float(a == b))).fit(X[:2], [{1}, {2}]), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_folders_are_not_overwritten(tmp_path):
    path, _ = saved(tmp_path)
    with pytest.raises(FileExistsError, match="not an empty folder"):
        save_model(IOKR(Gaussian(1.0), Linear()).fit(X, X), path)
    with pytest.raises(ValueError, match=r"no manifest\.json"):
        load_model(tmp_path / "absent")


def test_an_empty_array_is_refused(tmp_path):
    path, _ = saved(tmp_path)
    next(path.glob("*.npy")).write_bytes(b"")
    with pytest.raises(ValueError, match="no model that can be used"):
        load_model(path)


def test_a_missing_array_is_named(tmp_path):
    path, _ = saved(tmp_path)
    next(path.glob("*.npy")).unlink()
    with pytest.raises(ValueError, match="no model that can be used"):
        load_model(path)


def test_a_loaded_model_says_that_it_cannot_go_on(tmp_path):
    model = OEL(Gaussian(0.3), Linear(), 1e-3, 2, output_landmarks=5).fit(X, X)
    save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match="fit it again"):
        load_model(tmp_path / "m").partial_fit(X)


def test_spectra_come_back_whole(tmp_path):
    model = IOKR(ProbabilityProduct(), Linear(), 1e-2).fit(SPECTRA, X)
    save_model(model, tmp_path / "m")
    for a, b in zip(SPECTRA, load_model(tmp_path / "m").X_fit_, strict=True):
        np.testing.assert_array_equal(a.mz, b.mz)
        assert repr(a) == repr(b)
        assert (a.smiles, a.formula) == (b.smiles, b.formula)
