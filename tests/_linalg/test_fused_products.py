"""The fused kernel of split products computes what torch computes.

Without a GPU, Triton's interpreter runs the kernel (see ``conftest.py``).
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="Triton is needed to run its kernels, also without a GPU")

from psilearn._backend import Compute  # noqa: E402
from psilearn._linalg import (  # noqa: E402
    GramSum,
    SplitMatrix,
    SplitTriangle,
    add_product,
    offset_products,
    row_inner_products,
    split_products,
    split_triangle,
    symmetric_gaussians,
)
from psilearn._linalg import fused_products as fused  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module", autouse=True)
def interpreter():
    """Skip the tests where this version of Triton's interpreter fails with this version of NumPy."""
    from triton.runtime.errors import InterpreterError

    one = SplitMatrix.of(torch.ones((8, 8), device=DEVICE))
    try:
        fused.product(one, one)
    except InterpreterError as error:
        pytest.skip(f"Triton's interpreter does not run here: {error}")


@pytest.fixture
def used(monkeypatch):
    """Let split products of any size use the fused kernel, with short chunks."""
    monkeypatch.setattr(fused, "REFERENCE", fused.REFERENCE._replace(chunk=128))
    monkeypatch.setattr(fused, "_FASTEST", {})
    for module in (split_products, split_triangle, offset_products):
        monkeypatch.setattr(module, "fused_products", lambda A, B: fused)
    monkeypatch.setattr(split_products, "fused_split", lambda A, out: fused)


def matrix(shape, seed, exponent=0):
    values = np.random.default_rng(seed).standard_normal(shape) * 2.0**exponent
    return torch.from_numpy(values.astype(np.float32)).to(DEVICE)


def plain_product(A, B):
    return (A.scaled_product(B) / (A.scale * B.scale)).double()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "part"])
def test_a_matrix_is_split_as_torch_splits_it(dtype, layout, monkeypatch):
    values = matrix((100, 140), 0, 30).to(getattr(torch, dtype))
    A = {"rows": values, "columns": values.T.contiguous().T, "part": values[3:90, 7:]}[layout]
    expected = SplitMatrix.of(A, 2.0**34), SplitMatrix.of(A)
    monkeypatch.setattr(split_products, "fused_split", lambda A, out: fused)
    for ours, theirs in zip((SplitMatrix.of(A, 2.0**34), SplitMatrix.of(A)), expected, strict=True):
        assert torch.equal(ours.high, theirs.high) and torch.equal(ours.low, theirs.low)
    given = SplitMatrix.empty((100, 140), 1.0, values.device)
    given.fill(values, 2.0**-30)
    torch.testing.assert_close(given.to_tensor(), (values * 2.0**-30).float(), rtol=2**-21, atol=2**-24)


@pytest.mark.parametrize("in_rows", [False, True])
def test_products_of_any_shape_are_those_of_torch(used, in_rows):
    A, B = SplitMatrix.of(matrix((150, 300), 0, 40)), SplitMatrix.of(matrix((300, 131), 1, -60))
    B = SplitMatrix.of(matrix((131, 300), 1, -60)).T if in_rows else B
    expected = plain_product(A, B)
    torch.testing.assert_close(fused.product(A, B).double(), expected, rtol=0, atol=2e-6 * float(expected.abs().max()))


def test_only_tiles_below_the_diagonal_are_added(used):
    F, compute = matrix((200, 130), 0), Compute.of("float32", torch.device(DEVICE))
    total = GramSum(200, compute)
    total.add(SplitMatrix.of(F))
    total.add(SplitMatrix.of(F))
    expected = 2 * F.double() @ F.double().T
    torch.testing.assert_close(total.symmetric(), expected, rtol=1e-5, atol=1e-4)
    assert not total.lower[:128, 128:].any()


def test_products_are_added_in_float64(used):
    A, B = matrix((40, 70), 0), matrix((70, 50), 1)
    total = torch.full((40, 50), 1e9, dtype=torch.float64, device=DEVICE)
    add_product(total, SplitMatrix.of(A), SplitMatrix.of(B))
    torch.testing.assert_close(total - 1e9, A.double() @ B.double(), rtol=1e-5, atol=1e-5)


def test_gaussians_are_those_of_the_distances(used, monkeypatch):
    monkeypatch.setattr(offset_products, "is_split_faster", lambda shape, compute: True)
    A, B = matrix((140, 20), 0), matrix((30, 20), 1)
    left, right = ((rows.double() ** 2).sum(1) / -2 for rows in (A, B))
    largest = float(max(-left.min(), -right.min()))
    offsets = offset_products.Offsets(left, right, largest, 0.05)
    found = row_inner_products(A, B, offsets, Compute.of("float32", torch.device(DEVICE)))
    expected = torch.exp(-0.05 * torch.cdist(A.double(), B.double()) ** 2)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shift, factor", [(0, 2), (1, 4)])  # terms of shifted rows are positive: truncation adds up
def test_symmetric_gaussians_are_symmetric_and_nearly_as_accurate_as_float32(used, shift, factor, monkeypatch):
    monkeypatch.setattr(offset_products, "is_split_faster", lambda shape, compute: True)
    A = matrix((200, 300), 0).abs() + 0.1 if shift else matrix((200, 300), 0)
    A /= torch.linalg.vector_norm(A, dim=1, keepdim=True)
    halves = (A.double() ** 2).sum(1) / -2
    found = symmetric_gaussians(A, offset_products.Offsets(halves, halves, 0.5, 0.7), Compute("float32"))
    expected = torch.exp(-0.7 * ((A.double()[:, None] - A.double()) ** 2).sum(2))
    single = offset_products.Offsets(halves, halves, 0.5, 0.7).add_to(A @ A.T)
    assert torch.equal(found, found.T)
    others = ~torch.eye(len(A), dtype=torch.bool, device=DEVICE)  # kernels set the diagonal
    errors = [float((values - expected)[others].square().mean().sqrt()) for values in (found, single)]
    assert errors[0] <= factor * errors[1]


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_fused_substitution_solves_the_triangular_system(used, layout, monkeypatch):
    monkeypatch.setattr(split_triangle, "PANEL", 128)
    rng = np.random.default_rng(0)
    L = torch.from_numpy(np.tril(rng.standard_normal((300, 300)), -1) / 40 + np.diag(rng.uniform(0.5, 2, 300))).to(
        DEVICE
    )
    B = matrix((300, 45), 1)
    expected = torch.linalg.solve_triangular(L, B.double(), upper=False)
    given = B if layout == "rows" else B.T.contiguous().T
    X = SplitTriangle(L).solve(given, float(torch.linalg.vector_norm(expected, dim=0).max()))
    torch.testing.assert_close(X.to_tensor().double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given, B)  # the given block is not changed


def products_of(kernel, monkeypatch):
    """Return results of each kind of product, computed with a kernel."""
    monkeypatch.setattr(fused, "fastest_kernel", lambda index: kernel)
    A, B, rows = (
        SplitMatrix.of(matrix(shape, seed)) for seed, shape in enumerate([(700, 1000), (1000, 456), (300, 1000)])
    )
    total = torch.ones((700, 700), dtype=torch.float64, device=DEVICE)
    fused.add_product(A, A.T, 0.5, total, lower=True)
    L = torch.tril(matrix((700, 700), 3).double()) / 100 + torch.eye(700, dtype=torch.float64, device=DEVICE)
    X = SplitTriangle(L).solve(matrix((700, 456), 4), 1e3)
    return [
        fused.product(A, B),
        fused.product(A, rows.T),
        fused.gaussians(A, rows.T, 1e-3),
        fused.symmetric_gaussians(A, A.T, -1e-3),
        total,
        X.high,
        X.low,
    ]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
def test_both_kernels_return_the_same_bits(used, monkeypatch):
    monkeypatch.setattr(split_triangle, "PANEL", 256)
    fastest = fused.fastest_kernel(0)
    if fastest.function is fused.REFERENCE.function:
        pytest.skip("the kernel for Hopper GPUs does not run here")
    reference = fused.REFERENCE._replace(chunk=fastest.chunk)
    found, expected = (products_of(kernel, monkeypatch) for kernel in (fastest, reference))
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)


def test_factors_that_cannot_be_loaded_are_left_to_torch():
    assert split_products.fused_products(*(SplitMatrix.of(matrix((64, 64), seed)) for seed in range(2))) is None
    split = SplitMatrix.of(matrix((64, 100), 0))
    assert split_products._is_loadable(split) and split_products._is_loadable(split.T)
    assert not split_products._is_loadable(split[:, 1:])  # not aligned
