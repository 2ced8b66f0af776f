"""A few extreme rows change neither the kernel values of the others nor the median width, and keep their own digits."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

from psilearn._backend import NUMPY, Compute, to_numpy
from psilearn._linalg import split_products
from psilearn.kernels import Gaussian, Laplacian, Linear, Polynomial, euclidean
from tests.kernels.kernel_cases import PROPERTY
from tests.problems import precision

on_backends = pytest.mark.usefixtures("backend")
forms = pytest.mark.parametrize("form", [np.array, sparse.csr_matrix], ids=["dense", "csr"])
ROWS = np.random.default_rng(0).normal(size=(20, 4))
LARGEST = {np.float64: 1e12, np.float32: 1e6}
TOLERANCE = {np.float64: 1e-6, np.float32: 1e-3}
by_precision = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def with_outliers(size):
    """Rows with one outlier in one column, and a pair of outliers that are close to each other."""
    A = ROWS.copy()
    A[3, 1] = size
    A[7:9] += size * np.array([1.0, -1.0, 0.5, 0.25])
    return A


def squared(A, B):
    """Squared distances in exact arithmetic."""
    A, B = ([[Fraction(value) for value in row] for row in rows.tolist()] for rows in (A, B))
    return [[sum(((x - y) ** 2 for x, y in zip(a, b, strict=True)), Fraction()) for b in B] for a in A]


def gaussian(A, B, gamma):
    """Return exp(−γ|a − b|²) from exact squared distances."""
    return np.array([[exp(-float(Fraction(gamma) * d)) for d in row] for row in squared(A, B)])


@on_backends
@forms
@by_precision
@pytest.mark.parametrize("share", [1e-6, 1.0])
def test_gaussian_values_keep_their_digits(form, dtype, share):
    A = with_outliers(share * LARGEST[dtype])
    expected = gaussian(A, A, 0.25)
    np.testing.assert_allclose(np.exp(-0.25 * cdist(A, A, "sqeuclidean")), expected, atol=1e-9)
    with precision(dtype):
        for K in (Gaussian(0.25)(form(A)), Gaussian(0.25)(form(A), form(A.copy())), Gaussian(0.25).gram(form(A))):
            np.testing.assert_allclose(to_numpy(K), expected, rtol=0, atol=TOLERANCE[dtype])
        np.testing.assert_allclose(
            Gaussian(0.25).paired(form(A[:-1]), form(A[1:])), np.diagonal(expected, 1), rtol=0, atol=TOLERANCE[dtype]
        )


@on_backends
@by_precision
def test_gaussian_values_of_dense_rows_times_csr_rows(dtype):
    A = with_outliers(LARGEST[dtype])
    with precision(dtype):
        for K in (Gaussian(0.25)(A, sparse.csr_matrix(A)), Gaussian(0.25)(sparse.csr_matrix(A), A)):
            np.testing.assert_allclose(to_numpy(K), gaussian(A, A, 0.25), rtol=0, atol=TOLERANCE[dtype])


@on_backends
@forms
@by_precision
def test_the_gram_matrix_is_symmetric_with_ones_on_its_diagonal(form, dtype):
    with precision(dtype):
        for size in (1.0, LARGEST[dtype]):
            K = to_numpy(Gaussian(0.25).gram(form(with_outliers(size))))
            np.testing.assert_array_equal(K, K.T)
            np.testing.assert_array_equal(np.diagonal(K), 1)


@on_backends
@forms
def test_squared_distances_keep_their_digits(form):
    A = with_outliers(1e12)
    expected = np.array(squared(A, A), dtype=float)
    np.testing.assert_allclose(to_numpy(Linear().squared_distances(form(A))), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        Linear().paired_squared_distances(form(A[:-1]), form(A[1:])), np.diagonal(expected, 1), rtol=1e-12
    )


@on_backends
@forms
def test_squared_distances_keep_their_digits_in_single_precision(form):
    A = with_outliers(1e6)
    expected = np.array(squared(A, A), dtype=float)
    with precision(np.float32):
        actual = to_numpy(Linear().squared_distances(form(A)))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@on_backends
@forms
def test_two_clusters_far_from_each_other(form):
    A = ROWS + np.where(np.arange(len(ROWS)) % 2, 1e10, 0.0)[:, None]
    np.testing.assert_allclose(to_numpy(Gaussian(0.25)(form(A))), gaussian(A, A, 0.25), rtol=0, atol=1e-6)


@on_backends
def test_csr_rows_with_an_offset():
    A = ROWS + 1e9
    K = to_numpy(Gaussian(0.25)(sparse.csr_matrix(A)))
    np.testing.assert_allclose(K, gaussian(A, A, 0.25), rtol=0, atol=1e-6)
    median = np.median(cdist(A, A, "sqeuclidean")[np.triu_indices(len(A), 1)])
    assert Gaussian().fit(sparse.csr_matrix(A)).gamma_ == pytest.approx(1 / median, rel=1e-9)


@pytest.mark.parametrize("size", [1e7, 1e12, 1e150, 1e200])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Gaussian(base=Polynomial(degree=1))], ids=repr)
def test_one_outlier_hardly_changes_the_median_width(kernel, size):
    if size > 1e12 and kernel.get_params().get("base") is not None:
        pytest.skip("squares of a base kernel overflow")
    A = ROWS.copy()
    A[3, 1] = size
    for form in (np.array, sparse.csr_matrix):
        assert clone(kernel).fit(form(A)).gamma_ == pytest.approx(clone(kernel).fit(ROWS).gamma_, rel=0.1)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_one_outlier_among_mostly_equal_rows_is_not_the_width(offset):
    """The pairs that differ, not those that rounding relative to the outlier hides, have the median distance."""
    A = np.full((40, 2), offset)
    A[:6, 0] += np.arange(6)
    A[39, 1] = 1e7
    width = 1 / Gaussian().fit(A).gamma_
    distances = cdist(A, A, "sqeuclidean")[np.triu_indices(40, 1)]
    assert width == np.median(distances[distances > 0])


@on_backends
@by_precision
def test_the_laplacian_keeps_its_digits(dtype):
    A = with_outliers(LARGEST[dtype])
    expected = np.exp(-0.25 * cdist(A, A, "cityblock"))
    with precision(dtype):
        np.testing.assert_allclose(to_numpy(Laplacian(0.25)(A)), expected, rtol=0, atol=TOLERANCE[dtype])


@st.composite
def spread_rows(draw):
    """Rows with entries of any size up to 1e12, some of them copies of others with small changes."""
    entry = st.tuples(st.integers(-999, 999), st.integers(-3, 9)).map(lambda pair: pair[0] * 10.0 ** pair[1])
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(entry, min_size=width, max_size=width), min_size=2, max_size=6))
    A = np.array(rows)
    noise = np.array(draw(st.lists(st.floats(-2, 2), min_size=width, max_size=width)))
    return np.concatenate([A, A + noise, A[:1]])


@on_backends
@PROPERTY
@given(A=spread_rows(), gamma=st.sampled_from([1e-6, 0.01, 0.5, 30.0]), is_csr=st.booleans())
def test_gaussian_values_of_rows_of_any_size(A, gamma, is_csr):
    expected = gaussian(A, A, gamma)
    rows = sparse.csr_matrix(A) if is_csr else A
    np.testing.assert_allclose(to_numpy(Gaussian(gamma)(rows)), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(to_numpy(Gaussian(gamma)(rows[1:], rows)), expected[1:], rtol=0, atol=1e-6)
    expected = np.array(squared(A, A), dtype=float)
    typical = np.median(expected)
    np.testing.assert_allclose(
        to_numpy(Linear().squared_distances(rows)), expected, rtol=1e-6, atol=1e-6 * typical + 1e-300
    )


@pytest.mark.parametrize("length", [1.0, 30.0])
def test_gaussians_are_split_only_near_the_center(length, monkeypatch):
    torch = pytest.importorskip("torch")
    split = []
    multiply = split_products.SplitMatrix.multiply
    monkeypatch.setattr(split_products.SplitMatrix, "multiply", lambda *args: split.append(1) or multiply(*args))
    for module in (euclidean, split_products):
        monkeypatch.setattr(module, "has_half_units", lambda device: device is not None)
    rng = np.random.default_rng(0)
    A, B = (length * rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in rng.standard_normal((2, 520, 530)))
    found = Gaussian(0.5)(A, B, compute=Compute(np.dtype(np.float32), torch.device("cpu")))
    assert bool(split) == (length == 1)
    np.testing.assert_allclose(to_numpy(found), Gaussian(0.5)(A, B, compute=NUMPY), rtol=1e-4, atol=1e-12)
