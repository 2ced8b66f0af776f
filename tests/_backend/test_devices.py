"""The same model on every device: what comes in, what comes out, and what the answers are."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

torch = pytest.importorskip("torch")

from psilearn import IOKR, KDE, OEL, OELCV, Landmarks, PerExampleCandidates  # noqa: E402
from psilearn._backend import Compute, computing, current_compute, is_tensor, to_numpy  # noqa: E402
from psilearn._utils.samples import take  # noqa: E402
from psilearn.decoding import SharedCandidates  # noqa: E402
from psilearn.io import load_model, save_model  # noqa: E402
from psilearn.kernels import (  # noqa: E402
    Dice,
    Gaussian,
    GaussianTanimoto,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Tanimoto,
)
from tests.problems import KINDS, make  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
of_rows = pytest.mark.parametrize("kind", ["vectors", "unnormalised", "numbers", "tags", "fingerprints"])
on_devices = pytest.mark.parametrize("device", DEVICES)
MODELS = {
    "IOKR": IOKR(),
    "KDE": KDE(n_components=5),
    "OEL": OEL(n_components=5, supervision=0.4),
    "OEL₀": OEL(n_components=5, supervision=1.0),
    "landmarks": OEL(n_components=5, supervision=0.4, input_landmarks=15, output_landmarks=12),
    "others": OEL(
        n_components=5,
        supervision=0.4,
        input_landmarks=Landmarks(15, "leverage"),
        output_landmarks=Landmarks(12, "kmeans++"),
    ),
}


def prepared(name, kernel, **options):
    return clone(MODELS[name]).set_params(input_kernel=Gaussian(0.3), output_kernel=kernel, alpha=1e-3, **options)


def fitted(name, problem, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # p above the rank
        return prepared(name, problem.kernel, **options).fit(problem.X, problem.Y, unlabeled=problem.unlabeled)


def sets_of(problem):
    return PerExampleCandidates([take(problem.candidates, slice(i, i + 5 + i)) for i in range(len(problem.X_test))])


@on_devices
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_numpy(kind, name, device):
    problem = make(kind)
    ours, theirs = fitted(name, problem), fitted(name, problem, device=device)
    for candidates in (problem.candidates, sets_of(problem)):
        expected, found = (model.predict_topk(problem.X_test, 4, candidates) for model in (ours, theirs))
        assert np.array_equal(expected.indices, found.indices)
        np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9, atol=1e-9)
        truth = take(problem.Y, slice(0, 15))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no truth among the candidates
            before, after = (model.truth_positions(problem.X[:15], truth, candidates) for model in (ours, theirs))
        assert np.array_equal(before.nearer, after.nearer) and np.array_equal(before.tied, after.tied)


@on_devices
@pytest.mark.parametrize("dtype", ["float32", "tf32"])
@pytest.mark.parametrize("name", ["IOKR", "OEL", "landmarks"])
@pytest.mark.parametrize("kind", ["vectors", "fingerprints"])
def test_single_precision_is_near(kind, name, dtype, device):
    problem = make(kind)
    exact, found = fitted(name, problem), fitted(name, problem, dtype=dtype, device=device)
    assert found.regression_.coefficients.dtype == np.float32
    expected, values = (model.predict_topk(problem.X_test, 3).distances for model in (exact, found))
    np.testing.assert_allclose(values, expected, atol=1e-3)


@on_devices
def test_arrays_in_arrays_out(device):
    problem = make("vectors")
    model = fitted("landmarks", problem, device=device)
    arrays = [
        model.regression_.coefficients,
        model.regression_.anchors,
        model.embedding_.basis,
        model.candidates_.g,
        model.eigenvalues_,
    ]
    top = model.predict_topk(problem.X_test, 2)
    arrays += [model.embed(problem.X_test), model.transform_outputs(problem.Y), model.predict(problem.X_test)]
    arrays += [top.indices, top.distances, *top.outputs]
    assert all(isinstance(array, np.ndarray) for array in arrays)
    outputs, regression = model._continuation
    kept = [
        outputs.features.triangle,
        outputs.unlabeled_moment.sum.lower,
        regression.coefficients,
        regression.moment.matrix,
    ]
    assert not any(map(is_tensor, kept))


@on_devices
@of_rows
def test_tensors_in_tensors_out(kind, device):
    problem = make(kind)
    X, Y, U, X_test, C = (
        torch.from_numpy(np.ascontiguousarray(part)).to(device)
        for part in (problem.X, problem.Y, problem.unlabeled, problem.X_test, problem.candidates)
    )
    expected, model = fitted("OEL", problem), prepared("OEL", problem.kernel).fit(X, Y, unlabeled=U)
    top, of_candidates = model.predict_topk(X_test, 3), model.predict_topk(X_test, 3, C)
    results = [model.embed(X_test), model.transform_outputs(C), model.predict(X_test), top.indices, top.distances]
    results += [*of_candidates.outputs, of_candidates.nearest, of_candidates.margins]
    assert all(is_tensor(result) and result.device.type == device for result in results)
    assert np.array_equal(to_numpy(model.predict(X_test)), expected.predict(problem.X_test))
    assert np.array_equal(
        to_numpy(of_candidates.indices), expected.predict_topk(problem.X_test, 3, problem.candidates).indices
    )
    own = [C[i : i + 3 + i] for i in range(len(X_test))]
    assert np.array_equal(
        to_numpy(model.predict_topk(X_test, 2, own).indices),
        expected.predict_topk(problem.X_test, 2, [to_numpy(one) for one in own]).indices,
    )
    assert model.score(X, Y) == pytest.approx(expected.score(problem.X, problem.Y))
    assert isinstance(model.regression_.coefficients, np.ndarray)
    assert np.array_equal(to_numpy(model.predict(problem.X_test)), expected.predict(problem.X_test))  # arrays as well


@on_devices
def test_a_model_goes_from_one_place_to_another(device, tmp_path):
    problem = make("tags")
    model = fitted("OEL", problem, device=device)
    expected = model.predict_topk(problem.X_test, 3)
    for other in (None, "cpu", device):
        found = model.set_params(device=other).predict_topk(problem.X_test, 3)
        assert np.array_equal(found.indices, expected.indices)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.device == device
    for copy in (again, pickle.loads(pickle.dumps(model))):
        assert np.array_equal(copy.predict(problem.X_test), model.predict(problem.X_test))


def test_a_model_of_tensors_is_saved_as_one_of_arrays(tmp_path):
    problem = make("vectors")
    X, Y = torch.from_numpy(problem.X), torch.from_numpy(problem.Y)
    model = prepared("OEL", problem.kernel, device=torch.device("cpu")).fit(X, Y)
    save_model(model, tmp_path / "model")
    found = load_model(tmp_path / "model")
    assert found.device == "cpu" and isinstance(found.regression_.anchors, np.ndarray)
    assert np.array_equal(found.predict(problem.X_test), to_numpy(model.predict(torch.from_numpy(problem.X_test))))


@pytest.mark.parametrize(("first", "then"), [("cpu", None), (None, "cpu"), ("cpu", "cpu")])
@pytest.mark.parametrize("supervision", [0.4, 1.0])
def test_a_fit_goes_on_elsewhere(first, then, supervision):
    problem = make("fingerprints")
    expected = fitted("landmarks", problem, supervision=supervision).partial_fit(problem.candidates)
    model = fitted("landmarks", problem, supervision=supervision, device=first)
    model.set_params(device=then).partial_fit(problem.candidates)
    assert np.array_equal(model.predict(problem.X_test), expected.predict(problem.X_test))
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)


@on_devices
@pytest.mark.parametrize("scoring", ["mse", "loss", "top_1"])
@pytest.mark.parametrize("cv", [3, "loo"])
def test_a_search_has_the_scores_of_numpy(cv, scoring, device):
    problem = make("vectors")
    grid = {
        "input_kernels": [Gaussian(0.3), Gaussian(1.0)],
        "output_kernels": problem.kernel,
        "alphas": [1e-4, 1e-2],
        "n_components": [2, 5],
        "supervisions": [0.0, 0.5, 1.0],
    }
    found = []
    for place in (None, device):
        search = OELCV(**grid, cv=cv, scoring=scoring, random_state=0, device=place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of edges
            found.append(search.fit(problem.X, problem.Y, unlabeled=problem.unlabeled, candidates=problem.candidates))
    ours, theirs = (search.cv_results_["mean_test_score"] for search in found)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)
    assert found[1].best_estimator_.device == device


def test_a_search_on_a_device_is_one_process():
    problem = make("vectors")
    with pytest.raises(ValueError, match=r"n_jobs=2 starts processes, which cannot share cpu: use n_jobs=None"):
        OELCV(n_jobs=2, device="cpu").fit(problem.X, problem.Y)


def test_a_search_on_a_device_is_one_process_whatever_is_set_around():
    problem = make("vectors")
    grid = {"alphas": [1e-3], "n_components": [3], "supervisions": [0.5], "cv": 2, "random_state": 0}
    with joblib.parallel_config(n_jobs=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = OELCV(**grid, device="cpu").fit(problem.X, problem.Y)
    assert found.best_score_ == pytest.approx(OELCV(**grid).fit(problem.X, problem.Y).best_score_)


@on_devices
def test_sets_of_a_stated_coverage(device):
    problem = make("vectors")
    found = []
    for place in (None, device):
        model = fitted("OEL", problem, device=place)
        found.append(model.calibrate(problem.X, problem.Y).predict_set(problem.X_test, 0.8))
    assert all(np.array_equal(a, b) for a, b in zip(found[0].indices, found[1].indices, strict=True))


@on_devices
def test_candidates_are_embedded_once_and_kept(device, tmp_path):
    problem = make("fingerprints")
    expected = fitted("OEL", problem).predict_topk(problem.X_test, 3, problem.candidates)
    model = fitted("OEL", problem, device=device)
    C = torch.from_numpy(problem.candidates).to(device)
    kept = [model.candidate_set(problem.candidates), model.candidate_set(problem.candidates, tmp_path / "arrays")]
    kept += [model.candidate_set(C), model.candidate_set(C, tmp_path / "tensors")]
    kept.append(SharedCandidates.load(tmp_path / "tensors", model.embedding_))
    for candidates in kept:
        assert np.array_equal(model.predict_topk(problem.X_test, 3, candidates).indices, expected.indices)


@on_devices
def test_the_surroundings_decide_where_no_device_is_named(device):
    problem = make("vectors")
    with computing("float64", device):
        assert is_tensor(problem.kernel(problem.Y))
        inside = fitted("OEL", problem)
        assert isinstance(inside.embed(problem.X_test), np.ndarray)
        with computing():
            assert isinstance(problem.kernel(problem.Y), np.ndarray)
    assert current_compute().device is None
    assert np.array_equal(inside.predict(problem.X_test), fitted("OEL", problem).predict(problem.X_test))


# Kernels

BITS = (np.random.default_rng(0).random((30, 21)) < 0.3).astype(np.uint8)
BITS[4] = BITS[7] = 0
NUMBERS = np.random.default_rng(1).standard_normal((30, 6)) + 5
WIDE = sparse.csr_array(np.where(np.random.default_rng(0).random((30, 4000)) < 0.002, 1.5, 0.0))
TWICE = sparse.csr_array((np.ones(60), np.repeat(np.arange(30) % 6, 2), np.arange(0, 61, 2)), (30, 6))
KERNELS = {
    "linear": (Linear(), NUMBERS),
    "gaussian, CSR with entries that add up": (Gaussian(0.1), TWICE),
    "polynomial": (Polynomial(3, 0.2, 1.0), NUMBERS),
    "gaussian": (Gaussian(0.3), NUMBERS),
    "linear, CSR": (Linear(), sparse.csr_array(np.where(NUMBERS > 5, NUMBERS, 0))),
    "gaussian, CSR": (Gaussian(0.3), sparse.csr_matrix(np.where(NUMBERS > 5, NUMBERS, 0))),
    "gaussian, few nonzeros": (Gaussian(0.3), WIDE),
    "tanimoto": (Tanimoto(), BITS),
    "tanimoto, packed": (Tanimoto(packed=True), np.packbits(BITS, axis=1)),
    "dice, CSR": (Dice(), sparse.csr_array(BITS)),
    "gaussian tanimoto, packed": (GaussianTanimoto(packed=True), np.packbits(BITS, axis=1)),
    "sum": (Linear() + 0.5 * Gaussian(0.1), NUMBERS),
    "product, normalized": ((Linear() * Polynomial()).normalized(), NUMBERS),
    "of NumPy alone": (Laplacian(0.1), NUMBERS),
    "of both": (Laplacian(0.1) + Linear(), NUMBERS),
}


@on_devices
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", KERNELS)
def test_blocks_are_those_of_numpy(name, dtype, device):
    kernel, rows = KERNELS[name]
    for pair in ((rows, None), (rows[:7], rows[3:])):
        with computing(dtype, None):
            expected = kernel(*pair)
        with computing(dtype, device):
            found = kernel(*pair)
            assert is_tensor(found) and found.device.type == device
            np.testing.assert_allclose(kernel.diag(rows), [kernel.paired(rows, rows)[i] for i in range(30)])
        rtol = 1e-12 if dtype == "float64" else 2e-6
        np.testing.assert_allclose(to_numpy(found), expected, rtol=rtol, atol=rtol)


@on_devices
@pytest.mark.parametrize("name", [name for name, (_, rows) in KERNELS.items() if isinstance(rows, np.ndarray)])
def test_a_kernel_takes_tensors_without_more_ado(name, device):
    kernel, rows = KERNELS[name]
    tensor = torch.from_numpy(rows).to(device)
    expected = kernel(rows)
    for found in (kernel(tensor), kernel(tensor, rows), kernel(rows, tensor)):
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12)
        assert is_tensor(found)
    np.testing.assert_allclose(kernel.diag(tensor), kernel.diag(rows))


@on_devices
def test_few_nonzeros_are_multiplied_in_panels_where_zeros_have_no_room(device, monkeypatch):
    monkeypatch.setattr(Compute, "block_rows", lambda self, bytes_per_row, n: min(n, 4))
    with computing("float64", device):
        for other in (WIDE[5:], WIDE[5:].toarray()):
            np.testing.assert_allclose(to_numpy(Linear()(WIDE, other)), (WIDE @ WIDE[5:].T).toarray(), atol=1e-12)
            np.testing.assert_allclose(to_numpy(Linear()(other, WIDE)), (WIDE[5:] @ WIDE.T).toarray(), atol=1e-12)


class Doubled(Kernel):
    """A kernel of a user that takes tensors."""

    supports_torch = True

    def _block(self, A, B, compute):
        return 2 * A @ B.T

    def _diag(self, A):
        return 2 * (A * A).sum(1)


@on_devices
@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: 3 * k, lambda k: k + Linear(), lambda k: k.normalized()])
def test_a_kernel_of_a_user_takes_tensors(wrap, device):
    tensor = torch.from_numpy(NUMBERS).to(device).requires_grad_()
    expected = wrap(2 * Linear())(NUMBERS)
    np.testing.assert_allclose(to_numpy(wrap(Doubled())(tensor)), expected, rtol=1e-12)
    model = IOKR(wrap(Doubled()), Gaussian(0.1)).fit(tensor, tensor)
    assert np.array_equal(
        to_numpy(model.predict(tensor)), IOKR(wrap(2 * Linear()), Gaussian(0.1)).fit(NUMBERS, NUMBERS).predict(NUMBERS)
    )


def test_numbers_that_torch_has_not():
    large = np.array([[2**63 + 2**62, 1]], dtype=np.uint64)
    fields = np.zeros(5, dtype=[("a", "f4"), ("b", "f8")])
    fields["b"] = np.arange(5)
    with computing("float64", "cpu"):
        for rows in (large, fields["b"]):
            np.testing.assert_allclose(to_numpy(Linear()(rows)), np.outer(*2 * [rows.astype(float)]) if rows.ndim == 1
                                       else rows.astype(float) @ rows.astype(float).T)  # fmt: skip
    half = torch.ones((4, 2), dtype=torch.bfloat16)
    assert IOKR(Linear(), Linear()).fit(half, half).predict(half).dtype == torch.bfloat16


@pytest.mark.parametrize("before", ["highest", "high", "medium"])
def test_how_torch_multiplies_is_left_as_it_was(before):
    problem, around = make("vectors"), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        with computing("float32", "cpu"):
            assert torch.get_float32_matmul_precision() == "highest"
            fitted("OEL", problem, device="cpu")
        with pytest.raises(ValueError, match="alpha"), computing("float32", "cpu"):
            OEL(alpha=-1, device="cpu").fit(problem.X, problem.Y)
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(around)


# Bad input


@pytest.mark.parametrize("device", ["nonsense", "mps", 3.5, "meta"])
def test_a_device_that_there_is_not_is_named(device):
    problem = make("vectors")
    with pytest.raises(ValueError, match=r"device must be None, 'cpu' or 'cuda' \(or 'cuda:1', …\); got"):
        IOKR(device=device).fit(problem.X, problem.Y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_there_is_not_is_named():
    problem = make("vectors")
    with pytest.raises(
        ValueError, match="device='cuda' requires a GPU, but torch finds none on this machine: leave device out"
    ):
        IOKR(device="cuda").fit(problem.X, problem.Y)


def test_torch_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.find_spec", lambda name: None)
    problem = make("vectors")
    with pytest.raises(ImportError, match=r"device='cpu' needs torch: pip install 'psilearn\[torch\]'"):
        IOKR(device="cpu").fit(problem.X, problem.Y)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (torch.full((40, 3), torch.nan), ValueError, r"X contains NaN or infinity; shape \(40, 3\)"),
        (
            torch.zeros((40, 3, 2)),
            ValueError,
            r"X must have two dimensions, one row per object; got shape \(40, 3, 2\)",
        ),
        (torch.zeros(40), ValueError, r"X must have two dimensions"),
        (torch.zeros((40, 3), dtype=torch.complex64), ValueError, "X has dtype torch.complex64"),
        (torch.zeros((40, 3)).to_sparse(), TypeError, "give sparse rows as a SciPy CSR matrix"),
        (torch.zeros((0, 3)), ValueError, "X is empty"),
        (torch.zeros((40, 3), device="meta"), ValueError, "device of the tensors must be None, 'cpu' or 'cuda'"),
        (torch.zeros((39, 3)), ValueError, "X and y must have one row per example: X has 39, y has 40"),
    ],
)
def test_tensors_that_do_not_suit_are_refused(X, error, message):
    model, problem = prepared("OEL", Gaussian(0.3)), make("vectors")
    with pytest.raises(error, match=message):
        model.fit(X, torch.from_numpy(problem.Y))
    assert not hasattr(model, "embedding_")


def test_tensors_of_another_width_are_refused():
    problem = make("vectors")
    model = prepared("OEL", problem.kernel).fit(torch.from_numpy(problem.X), torch.from_numpy(problem.Y))
    with pytest.raises(ValueError, match="X has 2 features, but OEL is expecting 3 features"):
        model.predict(torch.zeros((5, 2)))
    with pytest.raises(ValueError, match="candidates must have the same width"):
        model.predict(torch.from_numpy(problem.X), candidates=torch.zeros((5, 3)))


def test_sets_that_are_no_sets_are_refused_as_tensors():
    with pytest.raises(ValueError, match=r"Tanimoto requires 0/1 rows, but A \(2 rows\) contains 2.0"):
        Tanimoto()(torch.tensor([[0.0, 1.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="requires dense rows of uint8"):
        Tanimoto(packed=True)(torch.zeros((2, 3)))


def test_gradients_stay_outside():
    problem = make("vectors")
    X = torch.from_numpy(problem.X).requires_grad_()
    model = prepared("OEL", problem.kernel).fit(X, torch.from_numpy(problem.Y))
    assert not model.embed(X).requires_grad
