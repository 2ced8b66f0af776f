"""What only a GPU can show: its memory, its matrix units. Skipped without one."""

import gc
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from psilearn import IOKR, OEL  # noqa: E402
from psilearn._backend import computing, to_numpy  # noqa: E402
from psilearn.decoding import bounds as score  # noqa: E402
from psilearn.kernels import Gaussian, GaussianTanimoto, Tanimoto  # noqa: E402

pytestmark = pytest.mark.cuda


def data(n=3000, d=20, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((n, 6)).round(1)


def test_importing_takes_no_memory_of_the_gpu():
    code = "import psilearn, psilearn.estimators, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    code = "import torch, psilearn, psilearn.estimators; print(torch.cuda.is_initialized())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def allocated_without_workspaces():
    """Return the bytes of tensors; cuBLAS takes 32 MiB for each pair of a thread and a stream, which may vary."""
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    return torch.cuda.memory_allocated()


@pytest.mark.parametrize("options", [{}, {"input_landmarks": 400, "output_landmarks": 300}])
def test_a_model_keeps_nothing_on_the_gpu(options):
    X, Y = data()
    before = None
    for _ in range(3):  # the first turn may leave what torch's own libraries keep
        model = OEL(Gaussian(0.05), Gaussian(0.1), n_components=20, device="cuda", **options)
        model.fit(X, Y, unlabeled=Y[:500] + 0.05).predict_topk(X, 5)
        held = allocated_without_workspaces()
        del model
        assert allocated_without_workspaces() == held
        assert before in (None, held)
        before = held
    assert held < 2**25


def test_nothing_is_kept_of_a_fit_on_tensors_but_the_tensors():
    X, Y = (torch.from_numpy(part).cuda() for part in data())
    IOKR(device="cuda").fit(X, Y)
    gc.collect()
    before = torch.cuda.memory_allocated()
    model = IOKR().fit(X, Y)
    model.predict(X)
    gc.collect()
    assert torch.cuda.memory_allocated() - before <= X.numel() * 8 + 2 * Y.numel() * 8  # X, Y or their distinct rows


def test_memory_that_would_not_suffice_is_named():
    with (
        computing("float64", "cuda") as compute,
        pytest.raises(MemoryError, match=r"bytes are available on cuda\. Less\."),
    ):
        compute.require_memory((10**6, 10**6), "A matrix", "Less.")


def test_a_block_that_truly_does_not_fit_is_halved(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.MAX_GPU_BLOCK_BYTES", 2**50)
    monkeypatch.setattr("psilearn._backend.compute.GPU_SHARE", 1)
    monkeypatch.setattr("psilearn._backend.compute.GPU_ROWS_FACTOR", 10**6)
    X, Y = data(200)
    model = OEL(Gaussian(0.05), Gaussian(0.1), n_components=5, device="cuda").fit(X, Y)
    many = np.tile(X, (2000, 1))
    expected = model.embed(X)
    free = torch.cuda.mem_get_info()[0]
    hog = torch.empty(max(0, free - 2**30), dtype=torch.uint8, device="cuda")  # leaves one GiB
    found = model.embed(many)
    del hog
    np.testing.assert_allclose(found, np.tile(expected, (2000, 1)), rtol=1e-10, atol=1e-12)


def test_matrix_units_count_exactly():
    rng = np.random.default_rng(0)
    bits = np.packbits(rng.random((500, 7593)) < 0.3, axis=1)
    expected = Tanimoto(packed=True)(bits)
    with computing("float64", "cuda"):
        assert np.array_equal(to_numpy(Tanimoto(packed=True)(bits)), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "tf32"])
def test_bounds_hold_in_every_precision(dtype):
    rng = np.random.default_rng(0)
    Z, g = rng.standard_normal((200, 50)), rng.standard_normal((3000, 50))
    norms = (g**2).sum(axis=1) + rng.random(3000)
    exact = norms - 2 * Z @ g.T
    with computing(dtype, "cuda") as compute:
        tensors = [torch.from_numpy(part).cuda() for part in (Z, g)]
        bounds = score.Bounds(score.Queries(tensors[0]), tensors[1], norms, 0, compute)
        lower = to_numpy(bounds.lower(bounds.left(slice(0, 200)), slice(0, 3000), None))
        spread = to_numpy(bounds.spread(torch.arange(200).cuda()[:, None], torch.arange(3000).cuda()))
    assert (lower <= exact).all() and (exact <= lower + spread).all()
    rounding = np.abs(lower + spread / 2 - exact).max()
    assert (rounding > 1e-4) == (dtype == "tf32")  # the matrix units are taken where they are asked for, only there


def test_matrix_units_leave_the_answers_alone():
    X, Y = data(4000)
    bits = (np.random.default_rng(1).random((4000, 60)) < 0.2).astype(np.uint8)
    for outputs, kernel in ((Y, Gaussian(0.1)), (bits, GaussianTanimoto())):
        tops = []
        for dtype in ("float32", "tf32"):
            model = OEL(Gaussian(0.05), kernel, n_components=30, dtype=dtype, device="cuda").fit(X, outputs)
            tops.append(model.predict_topk(X[:1000], 10))
        assert np.array_equal(tops[0].indices, tops[1].indices)
        assert np.array_equal(tops[0].distances, tops[1].distances)


def test_the_setting_of_torch_is_left_as_it_was():
    before = torch.backends.cuda.matmul.allow_tf32
    with computing("tf32", "cuda") as compute, compute.tensor_cores():
        assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cuda.matmul.allow_tf32 == before
