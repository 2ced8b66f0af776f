"""How blocks are computed does not change them: precision, routes for CSR rows, packed bits, panels, files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from psilearn._backend import Compute, current_compute, to_numpy
from psilearn._utils import worker_processes
from psilearn._utils.samples import n_samples, take
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
    Tanimoto,
)
from psilearn.kernels import inner_products as products
from psilearn.kernels.device_rows import column_counts, keep_columns
from tests.kernels.kernel_cases import CASES, PROPERTY, SPARSE_CASES, Stored, sets
from tests.problems import precision

on_backends = pytest.mark.usefixtures("backend")
every_case = pytest.mark.parametrize("case", CASES, ids=str)
RNG = np.random.default_rng(0)
BITS = (RNG.random((90, 37)) < 0.3).astype(np.uint8)
BITS[[3, 50]] = 0
ROWS = RNG.normal(size=(90, 5))
RANKS = np.argsort(RNG.random((90, 5)), axis=1) + 1


# Single precision


def assert_single(kernel, A, B=None):
    expected, diagonal, paired = to_numpy(kernel(A, B)), kernel.diag(A), kernel.paired(A, A)
    with precision(np.float32):
        actual = to_numpy(kernel(A, B))
        np.testing.assert_array_equal(kernel.diag(A), diagonal)  # float64 whatever the precision
        np.testing.assert_array_equal(kernel.paired(A, A), paired)
    assert (actual.dtype, expected.dtype, diagonal.dtype, paired.dtype) == (np.float32, *[np.float64] * 3)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * max(1.0, np.abs(expected).max()))


@on_backends
@every_case
@PROPERTY
@given(data=st.data())
def test_single_precision_gives_the_same_block_in_float32(case, data):
    A = data.draw(case.collections)
    kernel = clone(case.kernel).fit(A)
    assert_single(kernel, A)
    assert_single(kernel, A, A.copy())


@on_backends
@pytest.mark.parametrize("case", SPARSE_CASES, ids=str)
@PROPERTY
@given(data=st.data())
def test_single_precision_of_csr_rows(case, data):
    A = data.draw(case.collections)
    kernel = clone(case.kernel).fit(A)
    assert_single(kernel, sparse.csr_matrix(A))
    assert_single(kernel, sparse.csr_matrix(A), A)


@on_backends
def test_the_median_width_does_not_depend_on_the_precision():
    for kernel in (Gaussian(), Laplacian(), GaussianTanimoto("median")):
        expected = clone(kernel).fit(BITS).gamma_
        with precision(np.float32):
            assert clone(kernel).fit(BITS).gamma_ == expected


@on_backends
def test_a_common_offset_costs_no_digits_in_single_precision():
    expected = to_numpy(Gaussian(0.1)(ROWS))
    with precision(np.float32):
        np.testing.assert_allclose(to_numpy(Gaussian(0.1)(ROWS + 1e4)), expected, atol=1e-5)


@on_backends
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "matrix", [np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[2, 1], [1, 3]])], ids=["float", "int"]
)
def test_what_a_users_kernel_returns_is_cast_and_not_overwritten(matrix, dtype):
    own, before = Stored(matrix), matrix.copy()
    with precision(dtype):
        assert to_numpy(own([0, 1])).dtype == current_compute().dtype
        for kernel in (2 * own, own + own, own * own, own.normalized(), Gaussian(0.5, base=own)):
            assert to_numpy(kernel([0, 1])).dtype == dtype
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_distances_of_pairs_keep_their_digits_under_an_offset(offset):
    A, B = ROWS[:5] + offset, ROWS[5:10] + offset
    exact = ((A - B) ** 2).sum(axis=1)
    np.testing.assert_allclose(Linear().paired_squared_distances(A, B), exact, rtol=1e-12)
    np.testing.assert_allclose(Gaussian(0.1).paired(A, B), np.diagonal(Gaussian(0.1)(A, B)), rtol=1e-6)


@on_backends
def test_a_block_that_overflows_single_precision_is_refused():
    with precision(np.float32), pytest.raises(ValueError, match="returned inf for objects 1 and 0"):
        Linear()(np.array([[1.0], [1e30]]), np.array([[1e30]]))


# Routes for CSR rows


ROUTES = [products.products, products._by_tiles, products._by_panels, products._by_panels_of_A, products._by_sparse]
by_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)


def gathered(route, A, B, dtype):
    """Put the tiles of a route together; each entry comes once."""
    whole, times = np.zeros((A.shape[0], B.shape[0]), dtype), np.zeros((A.shape[0], B.shape[0]), int)

    def put(tile, i, j):
        assert tile.dtype == dtype
        whole[i, j] = tile
        times[i, j] += 1

    route(A, B, dtype, put)
    assert (times == 1).all()
    return whole


@by_route
@pytest.mark.parametrize("memory", [1024, 0.01])
@pytest.mark.parametrize("density", [0, 0.002, 0.05, 0.3, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_route_gives_the_products_of_dense_rows(route, density, dtype, memory, monkeypatch):
    monkeypatch.setattr(products, "TILE", 32)
    monkeypatch.setattr(worker_processes, "n_threads", lambda: 3)
    A = sparse.random(70, 101, density, "csr", random_state=0)
    B = sparse.random(95, 101, density, "csr", random_state=1)
    with config_context(working_memory=memory):
        actual = gathered(route, A, B, dtype)
    np.testing.assert_allclose(actual, A.toarray() @ B.toarray().T, rtol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("density", [0.01, 0.5])
def test_csr_rows_times_dense_rows(density):
    A = sparse.random(40, 300, density, "csr", random_state=0)
    B = np.random.default_rng(1).normal(size=(30, 300))
    expected = A.toarray() @ B.T
    np.testing.assert_allclose(products.inner_products(A, B, current_compute()), expected, atol=1e-12)
    np.testing.assert_allclose(products.inner_products(B, A, current_compute()), expected.T, atol=1e-12)
    np.testing.assert_allclose(gathered(products._by_panels, A, B, np.dtype(float)), expected, atol=1e-12)
    np.testing.assert_allclose(gathered(products._by_panels_of_A, B, A, np.dtype(float)), expected.T, atol=1e-12)


@on_backends
@pytest.mark.parametrize("memory", [1024, 0.01])
@pytest.mark.parametrize("density", [0, 0.002, 0.05, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_density_and_memory_do_not_change_products_of_csr_rows(density, memory, dtype):
    A = sparse.random(40, 300, density, "csr", random_state=0)
    B = sparse.random(30, 300, density, "csr", random_state=1)
    expected = A.toarray() @ B.toarray().T
    for left, right in ((A, B), (A, B.toarray()), (A.toarray(), B)):
        with config_context(working_memory=memory), precision(dtype):
            K = to_numpy(Linear()(left, right))
        assert K.dtype == dtype
        np.testing.assert_allclose(K, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)


@on_backends
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 40])
def test_columns_that_only_one_side_uses_change_nothing(width, dtype, monkeypatch):
    monkeypatch.setattr(products, "TILE", 16)
    A, B = (sparse.lil_matrix((rows, 5000)) for rows in (60, 50))
    A[:, :width], B[:, :width] = RNG.random((60, width)), RNG.random((50, width))
    A[:, 100:400], B[:, 700:720] = RNG.random((60, 300)), RNG.random((50, 20))
    expected = A.toarray() @ B.toarray().T
    with precision(dtype):
        np.testing.assert_allclose(to_numpy(Linear()(A.tocsr(), B.tocsr())), expected, rtol=1e-5)
        np.testing.assert_allclose(to_numpy(Linear()(A.tocsr())), (A @ A.T).toarray(), rtol=1e-5)


@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_kept_columns_are_those_of_dense_rows(share):
    rows = sparse.random(20, 50, 0.2, "csr", random_state=0)
    kept = np.random.default_rng(1).random(50) < share
    np.testing.assert_array_equal(keep_columns(rows, kept).toarray(), rows.toarray()[:, kept])
    np.testing.assert_array_equal(column_counts(rows), (rows.toarray() != 0).sum(axis=0))


@pytest.mark.parametrize(("density", "expected"), [(0.001, "_by_sparse"), (0.03, "_by_panels"), (0.5, "_by_tiles")])
def test_the_route_follows_the_density(density, expected, monkeypatch):
    taken = []
    for route in ROUTES[1:]:

        def note(*_, name=route.__name__):
            taken.append(name)

        note.__name__ = route.__name__
        monkeypatch.setattr(products, route.__name__, note)
    A = sparse.random(2000, 2000, density, "csr", random_state=0)
    products.products(A, sparse.random(4000, 2000, density, "csr", random_state=1), np.float32, None)
    assert taken[0].startswith(expected)


def test_the_number_of_threads_can_be_limited(monkeypatch):
    monkeypatch.setattr(worker_processes, "cpu_count", lambda: 8)
    for limit, expected in (("", 8), ("3", 3), ("0", 8), ("64", 8), ("4,2", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert worker_processes.n_threads() == expected


def test_strips_and_threads_change_nothing(monkeypatch):
    kernels = (Gaussian(0.1), Polynomial(5), Laplacian(0.2), Linear().normalized(), Gaussian(0.1, base=Tanimoto()))
    expected = [kernel(BITS) for kernel in kernels]
    monkeypatch.setattr(products, "STRIP_BYTES", 600)
    monkeypatch.setattr(worker_processes, "n_threads", lambda: 3)
    for kernel, values in zip(kernels, expected, strict=True):
        np.testing.assert_allclose(kernel(BITS), values, rtol=1e-13)


@on_backends
@pytest.mark.parametrize("kernel", [Tanimoto(), Dice(), Kemeny(), Laplacian(0.3)], ids=repr)
def test_tiles_change_nothing(kernel, monkeypatch):
    A = RANKS if isinstance(kernel, Kemeny) else BITS
    expected = to_numpy(kernel(A, A[:40]))
    for size in ("inner_products.TILE", "gaussian.TILE", "device_rows.MAX_UNPACKED_ROWS"):
        monkeypatch.setattr(f"psilearn.kernels.{size}", 8)
    with config_context(working_memory=0.01):
        np.testing.assert_array_equal(to_numpy(kernel(A, A[:40])), expected)


@on_backends
def test_rankings_may_come_unsigned():
    np.testing.assert_array_equal(to_numpy(Kemeny()(RANKS.astype(np.uint8))), to_numpy(Kemeny()(RANKS)))
    np.testing.assert_array_equal(Kemeny().diag(RANKS.astype(np.uint8)), Kemeny().diag(RANKS))


# Packed bits


@on_backends
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Tanimoto, Dice, GaussianTanimoto], ids=lambda kernel: kernel.__name__)
@PROPERTY
@given(A=sets, data=st.data())
def test_packed_bits_give_the_values_of_bits(kernel, dtype, A, data):
    P = np.packbits(A.astype(bool), axis=1)
    order = np.array(data.draw(st.permutations(range(len(A)))))
    with precision(dtype):
        np.testing.assert_array_equal(to_numpy(kernel(packed=True)(P)), to_numpy(kernel()(A)))
        crossed = to_numpy(kernel(packed=True)(P, P[order]))
        np.testing.assert_array_equal(crossed, to_numpy(kernel()(A, A[order])))
        np.testing.assert_array_equal(kernel(packed=True).paired(P, P[order]), kernel().paired(A, A[order]))
        np.testing.assert_array_equal(kernel(packed=True).diag(P), kernel().diag(A))


def test_packed_bits_come_in_panels(monkeypatch):
    monkeypatch.setattr(products, "TILE", 16)
    unpacked = []

    def note(self, rows, part, dtype, bits=Tanimoto._bits):
        unpacked.append(part.stop - part.start)
        return bits(self, rows, part, dtype)

    monkeypatch.setattr(Tanimoto, "_bits", note)
    monkeypatch.setattr(products, "STRIP_BYTES", 2000)
    np.testing.assert_array_equal(Tanimoto(packed=True)(np.packbits(BITS, axis=1)), Tanimoto()(BITS))
    assert max(unpacked) <= 16


@pytest.mark.parametrize("kernel", [Tanimoto(packed=True), Dice(packed=True), GaussianTanimoto(packed=True)], ids=repr)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (BITS.astype(float), "Y is of dtype float64"),
        (BITS.astype(bool), "Y is of dtype bool"),
        (BITS.tolist(), "Y is of dtype int64"),
        (sparse.csr_matrix(BITS), "Y is a CSR matrix"),
    ],
    ids=["floats", "bools", "lists", "csr"],
)
def test_packed_bits_are_dense_bytes(kernel, bad, message):
    with pytest.raises(ValueError, match=rf"numpy\.packbits.*{message}"):
        kernel.check(bad, "Y")


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float32])
def test_a_value_that_is_no_bit_is_found_wherever_it_stands(dtype, monkeypatch):
    monkeypatch.setattr(products, "STRIP_BYTES", 100)
    A = BITS.astype(dtype)
    A[80, 30] = 7
    for form in (A, sparse.csr_matrix(A)):
        with pytest.raises(ValueError, match=r"0/1 rows, but Y .* contains .*7"):
            Tanimoto().check(form, "Y")


# The Gram matrix by panels


def letters(a, b):
    return float(sum(a.count(letter) * b.count(letter) for letter in set(a)))


WORDS = ["".join(RNG.choice(list("abc"), 3)) for _ in range(40)]
MATRIX = ROWS[:40] @ ROWS[:40].T
GRAMS = [
    (Linear(), ROWS),
    (Linear(), sparse.csr_matrix(ROWS)),
    (Gaussian(0.3), ROWS),
    (Laplacian(0.3), ROWS),
    (GaussianTanimoto(), sparse.csr_matrix(BITS)),
    (Dice(packed=True), np.packbits(BITS, axis=1)),
    (Kemeny(), RANKS),
    (Pairwise(letters), WORDS),
    (Precomputed(MATRIX), np.arange(40)[::-1]),
    (2 * Gaussian(0.1, base=Precomputed(MATRIX)), np.arange(40)),
]
by_gram = pytest.mark.parametrize(("kernel", "A"), GRAMS, ids=[str(i) for i in range(len(GRAMS))])


@on_backends
@by_gram
@pytest.mark.parametrize("memory", [0.001, 0.01, 0.1])
def test_panels_make_the_whole_gram_matrix(kernel, A, memory):
    expected = to_numpy(kernel(A, A))
    with config_context(working_memory=memory):
        K = to_numpy(kernel.gram(A))
    with precision(np.float32):
        assert to_numpy(kernel.gram(A)).dtype == np.float64  # whatever the precision of the panels
    np.testing.assert_allclose(K, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(K, K.T, atol=1e-14 * np.abs(expected).max())


@on_backends
def test_panels_evaluate_a_pair_once(monkeypatch):
    calls = []
    monkeypatch.setattr(Compute, "block_rows", lambda self, bytes_per_row, n: 10)
    monkeypatch.setattr("psilearn.kernels.gram_matrix.MIN_PANEL_ROWS", 10)
    Pairwise(lambda a, b: calls.append((a, b)) or 1.0).gram(list(range(40)))
    assert len(calls) == 40 * 41 // 2 + 10 * 10 + 40 + 4 * 9  # the probe, the diagonal, and swapped pairs


@on_backends
@pytest.mark.parametrize("place", [(1, 0), (39, 0), (20, 5), (39, 38)], ids=str)
def test_panels_find_every_asymmetry_of_a_stored_matrix(place):
    matrix = np.eye(40)
    matrix[place] = 0.5
    for kernel in (Precomputed(matrix), 2 * Precomputed(matrix)):
        with (
            config_context(working_memory=0.01),
            pytest.raises(ValueError, match=r"(?s)Precomputed.*not symmetric.*differ by up to"),
        ):
            kernel.gram(np.arange(40))


@on_backends
def test_panels_find_an_asymmetric_function(monkeypatch):
    monkeypatch.setattr(Compute, "block_rows", lambda self, bytes_per_row, n: 10)
    monkeypatch.setattr("psilearn.kernels.gram_matrix.MIN_PANEL_ROWS", 10)
    with pytest.raises(ValueError, match="not symmetric"):
        Pairwise(lambda a, b: float(a - b) + 40 * (a == b)).gram(list(range(40)))


@on_backends
def test_panels_find_a_contradicting_diagonal():
    class Contradicts(Linear):
        def _diag(self, A):
            return super()._diag(A) + 1

    with config_context(working_memory=0.01), pytest.raises(ValueError, match=r"is inconsistent.*differ by up to 1"):
        Contradicts().gram(ROWS)


@on_backends
@pytest.mark.parametrize("pair", [(35, 3), (35, 34), (2, 1)])
def test_panels_name_the_objects_whose_value_is_not_finite(pair):
    matrix = np.eye(40)
    matrix[pair] = matrix[pair[::-1]] = np.nan
    numbers = {pair, pair[::-1]}
    with config_context(working_memory=0.01), pytest.raises(ValueError, match="returned nan for objects") as error:
        Precomputed(matrix).gram(np.arange(40))
    assert any(f"objects {i} and {j};" in str(error.value) for i, j in numbers)


# Files


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.1), Laplacian(0.1), Tanimoto(), Dice(), Kemeny()], ids=repr)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_arrays_in_files_are_not_copied(kernel, dtype, tmp_path):
    A = RANKS if isinstance(kernel, Kemeny) else BITS
    stored = np.memmap(tmp_path / "rows", dtype, "w+", shape=A.shape)
    stored[:] = A
    stored = np.memmap(tmp_path / "rows", dtype, "r", shape=A.shape)
    checked = kernel.check(stored, "Y")
    assert np.shares_memory(checked, stored)
    K = kernel(stored, take(stored, slice(0, 20)))
    assert type(K) is np.ndarray
    np.testing.assert_allclose(K, kernel(A, A[:20]), rtol=1e-13)
    assert type(kernel.gram(stored)) is np.ndarray


def test_a_precomputed_matrix_in_a_file(tmp_path):
    stored = np.memmap(tmp_path / "matrix", float, "w+", shape=MATRIX.shape)
    stored[:] = MATRIX
    K = Precomputed(stored)([3, 1], [0, 2, 4])
    assert type(K) is np.ndarray
    np.testing.assert_array_equal(K, MATRIX[[3, 1]][:, [0, 2, 4]])
    assert n_samples(K) == 2
