"""Products in split precision keep their error bound, and what is built on them equals the plain computation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from psilearn._backend import Compute  # noqa: E402
from psilearn._linalg import (  # noqa: E402
    HALF_ERROR,
    SPLIT_ERROR,
    SPLIT_UNDERFLOW,
    GramSum,
    HalfMatrix,
    Offsets,
    SplitMatrix,
    SplitTriangle,
    is_split_faster,
    matmul,
    multiply_halves,
    row_inner_products,
    split_products,
    squared_column_norms,
    torch_triangles,
)

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def matrix(shape, seed, exponent=0, spread=0.0, device="cpu"):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) * 2.0 ** (exponent + spread * rng.standard_normal(shape))
    return torch.from_numpy(values.astype(np.float32)).to(device)


def allowed_error(A, B):
    terms = A.shape[1]
    sums = min(terms, split_products.CHUNK) * 2.0**-23 + (3 + terms / split_products.CHUNK) * 2.0**-24
    relative = (SPLIT_ERROR + sums) * (A.abs().double() @ B.abs().double())
    return relative + terms * SPLIT_UNDERFLOW * float(A.abs().max()) * float(B.abs().max())


@pytest.mark.parametrize("device", DEVICES)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40)),
    st.integers(-90, 90),
    st.floats(0, 6),
)
def test_the_error_is_within_the_bound(device, seed, shape, exponent, spread):
    a, k, b = shape
    A, B = matrix((a, k), seed, exponent, spread, device), matrix((k, b), seed + 1, 0, spread, device)
    error = (SplitMatrix.of(A) @ SplitMatrix.of(B)).double() - A.double() @ B.double()
    assert bool((error.abs() <= allowed_error(A, B)).all())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("positive", [False, True])
def test_long_sums_are_within_the_bound(device, positive):
    A, B = matrix((60, 5000), 0, device=device), matrix((5000, 70), 1, device=device)
    A, B = (A.abs(), B.abs()) if positive else (A, B)
    error = (SplitMatrix.of(A) @ SplitMatrix.of(B)).double() - A.double() @ B.double()
    assert bool((error.abs() <= allowed_error(A, B)).all())
    assert float((error.abs() / (A.abs().double() @ B.abs().double())).max()) < 2e-5


@pytest.mark.parametrize("device", DEVICES)
def test_counts_are_exact(device):
    rng = np.random.default_rng(0)
    bits = torch.from_numpy(rng.random((50, 4001)) < 0.7).to(device).half()
    found = multiply_halves(bits, bits.T)
    assert found.dtype == torch.float32
    assert torch.equal(found.double(), bits.double() @ bits.double().T)


def test_slices_and_transposes_are_those_of_the_matrix():
    A = matrix((30, 21), 0)
    split = SplitMatrix.of(A)
    B, C, part = matrix((7, 9), 1), matrix((9, 4), 2), A[3:12, 5:12]
    torch.testing.assert_close(split[3:12, 5:12] @ B, part @ B, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(split[3:12, 5:12].T @ C, part.T @ C, rtol=1e-5, atol=1e-6)
    assert SplitMatrix.of(A.T).shape == (21, 30)


def test_zeros_stay_zeros():
    assert not (SplitMatrix.of(torch.zeros(4, 5)) @ SplitMatrix.of(torch.zeros(5, 3))).any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("panel", [2048, 16])
def test_substitution_in_panels_solves_the_triangular_system(device, panel, monkeypatch):
    monkeypatch.setattr(torch_triangles, "SPLIT_PANEL", panel)
    rng = np.random.default_rng(0)
    L = torch.from_numpy(np.tril(rng.standard_normal((83, 83)), -1) / 10 + np.diag(rng.uniform(0.5, 2, 83))).to(device)
    B = matrix((83, 45), 1, device=device)
    expected = torch.linalg.solve_triangular(L, B.double(), upper=False)
    longest = float(torch.linalg.vector_norm(expected, dim=0).max())
    X = SplitTriangle(L).solve(B, longest)
    torch.testing.assert_close(X.to_tensor().double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(squared_column_norms(X), (expected**2).sum(0), rtol=1e-5, atol=1e-5)
    columns = SplitTriangle(L).solve(B.T.contiguous().T, longest)  # another layout, the same numbers
    torch.testing.assert_close(columns.to_tensor(), X.to_tensor(), rtol=1e-6, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(-48, 48))
def test_substitution_has_the_error_of_single_precision_at_any_scale(seed, exponent):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 60))
    K = torch.from_numpy(rows @ rows.T / 60 * 2.0 ** (2 * exponent))
    L = torch.linalg.cholesky(K)
    B = K[:, rng.permutation(40)[:20]]  # columns of K, whose solutions are rows of L
    expected = torch.linalg.solve_triangular(L, B, upper=False)
    longest = float(torch.sqrt(K.diagonal().max()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_triangles, "SPLIT_PANEL", 16)
        found = SplitTriangle(L).solve(B.float(), longest).to_tensor().double()
    assert float((found - expected).abs().max()) <= 1e-4 * longest


def test_products_of_split_and_plain_matrices_are_the_same():
    A, B = matrix((30, 21), 0), matrix((21, 12), 1)
    pairs = [(A, B), (SplitMatrix.of(A), B), (A, SplitMatrix.of(B)), (SplitMatrix.of(A), SplitMatrix.of(B))]
    for left, right in pairs:
        torch.testing.assert_close(matmul(left, right), A @ B, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sum_in_panels_is_the_sum_of_the_products(device, dtype, monkeypatch):
    monkeypatch.setattr(split_products, "PANEL", 8)
    compute = Compute.of(dtype, torch.device(device))
    total, expected = GramSum(30, compute), 0
    for seed in range(3):
        F = compute.asarray(matrix((30, 12), seed), dtype)
        total.add(F if seed else SplitMatrix.of(F) if dtype == np.float32 else F)
        expected = expected + F.double() @ F.double().T
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    torch.testing.assert_close(total.symmetric(), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(total.to_numpy().symmetric(), expected.cpu().numpy(), rtol=tolerance, atol=tolerance)
    other = GramSum(30, compute)
    other.merge(total.to_numpy())
    torch.testing.assert_close(other.symmetric(), total.symmetric(), rtol=1e-15, atol=1e-15)


def test_only_large_float32_matrices_on_a_gpu_are_split():
    assert not is_split_faster((4096, 4096), Compute.of("float32"))
    assert not is_split_faster((4096, 4096), Compute.of("float32", torch.device("cpu")))


@pytest.mark.cuda
def test_matrices_are_split_on_a_gpu():
    compute = Compute.of("float32", torch.device("cuda"))
    assert is_split_faster((4096, 4096), compute)
    assert not is_split_faster((4096, 100), compute)
    assert not is_split_faster((4096, 4096), compute.with_dtype(np.float64))


@pytest.mark.parametrize("device", DEVICES)
@given(st.integers(0, 2**32 - 1), st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(1, 30)))
def test_the_error_with_rounded_rows_is_within_the_bound(device, seed, shape):
    a, k, b = shape
    A, B = matrix((a, k), seed, spread=3, device=device), matrix((b, k), seed + 1, spread=3, device=device)
    rows = HalfMatrix.empty((b, k), 3 * float(B.abs().max()), B.device)
    rows.fill(slice(0, k), B.double(), -2)
    error = SplitMatrix.of(A).times_rows(rows).double() + 2 * A.double() @ B.double().T
    sums = (A.abs().double() @ B.abs().double().T) * (HALF_ERROR + (k + 3) * 2.0**-23)
    assert bool(
        (error.abs() <= 2 * (sums + k * SPLIT_UNDERFLOW * float(A.abs().max()) * 3 * float(B.abs().max()))).all()
    )


def test_matrices_without_columns_have_products():
    assert (SplitMatrix.of(matrix((4, 5), 0)) @ torch.zeros((5, 0))).shape == (4, 0)


def test_scales_far_apart_do_not_overflow():
    A, B = matrix((4, 5), 0, exponent=120), matrix((5, 3), 1, exponent=-100)
    torch.testing.assert_close(SplitMatrix.of(A) @ SplitMatrix.of(B), A @ B, rtol=1e-4, atol=1.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("d", [8, 37])
@pytest.mark.parametrize("largest", [0.0, 1e-3, 1e5])
def test_inner_products_with_offsets_are_within_the_bound(device, d, largest, monkeypatch):
    A, B = matrix((30, d), 0, device=device), matrix((20, d), 1, device=device)
    left, right = (-largest * torch.rand(len(rows), dtype=torch.float64, device=device) for rows in (A, B))
    expected = A.double() @ B.double().T + left[:, None] + right
    compute = Compute(np.float32, torch.device(device))
    plain = row_inner_products(A, B, Offsets(left, right, largest), compute)
    monkeypatch.setattr(split_products, "is_split_faster", lambda shape, compute: True)
    split = row_inner_products(A, B, Offsets(left, right, largest), compute)
    allowed = allowed_error(A, B.T) + (d + 2) * SPLIT_UNDERFLOW * (float(A.abs().max()) + largest**0.5) * (
        float(B.abs().max()) + largest**0.5
    )
    allowed += 2.0**-19 * (left.abs()[:, None] + right.abs())
    for found in (plain, split):
        assert bool(((found.double() - expected).abs() <= allowed).all())
    assert not torch.equal(plain, split)
