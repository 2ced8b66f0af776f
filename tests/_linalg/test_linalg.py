"""Factorizations and eigenpairs against NumPy's dense answers."""

from functools import partial

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgError, eigh

from psilearn._backend import NUMPY, current_compute, to_numpy
from psilearn._linalg import (
    Moment,
    NotPositiveSemidefiniteError,
    PivotedCholesky,
    ShiftedCholesky,
    block_krylov_eigh,
    pivoted_cholesky,
    top_eigh,
)
from psilearn._linalg import eigen as linalg
from psilearn.kernels import Gaussian, Linear, Tanimoto
from tests.problems import asarray, block

on_backends = pytest.mark.usefixtures("backend")
PROPERTY = settings(max_examples=50, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def random_gram(n, rank, seed=0):
    features = np.random.default_rng(seed).normal(size=(n, rank))
    return features @ features.T


def with_eigenvalues(values, seed=0):
    """A symmetric matrix with these eigenvalues and random eigenvectors."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    M = (Q * values) @ Q.T
    return (M + M.T) / 2


def factored(K):
    """Factor K where the work is done; the result in NumPy."""
    factor, pivots = pivoted_cholesky(asarray(K))
    return PivotedCholesky(to_numpy(factor), pivots)


def operator(M):
    """M as a product with blocks, where the work is done."""
    there = asarray(M)
    return lambda B: there @ B


def leading(M, k):
    values, vectors = top_eigh(operator(M), len(M), k, current_compute())
    return to_numpy(values), to_numpy(vectors)


def krylov(M, start, k, **options):
    pairs = block_krylov_eigh(operator(M), asarray(start), k, **options)
    return None if pairs is None else (to_numpy(pairs[0]), to_numpy(pairs[1]))


# Pivoted Cholesky


@on_backends
@PROPERTY
@given(n=st.integers(1, 25), rank=st.integers(0, 25), seed=seeds)
def test_the_factor_reproduces_the_matrix(n, rank, seed):
    K = random_gram(n, min(rank, n), seed)
    factor = factored(K).factor
    np.testing.assert_allclose(factor @ factor.T, K, rtol=0, atol=1e-11 * max(1.0, np.abs(K).max()))


@on_backends
@PROPERTY
@given(n=st.integers(1, 25), rank=st.integers(0, 25), seed=seeds)
def test_the_factor_has_as_many_columns_as_the_rank(n, rank, seed):
    K = random_gram(n, min(rank, n), seed)
    factor, pivots = factored(K)
    assert factor.shape == (n, np.linalg.matrix_rank(K, hermitian=True))
    assert len(set(pivots.tolist())) == factor.shape[1]


@on_backends
@PROPERTY
@given(n=st.integers(1, 25), rank=st.integers(1, 25), seed=seeds)
def test_the_triangle_is_the_factor_of_the_pivots(n, rank, seed):
    K = random_gram(n, min(rank, n), seed)
    result = factored(K)
    T = result.triangle
    assert np.array_equal(T, result.factor[result.pivots])
    assert np.array_equal(T, np.tril(T))
    assert (np.diagonal(T) > 0).all()
    spanning = K[np.ix_(result.pivots, result.pivots)]
    np.testing.assert_allclose(T @ T.T, spanning, rtol=0, atol=1e-11 * np.abs(K).max())


@on_backends
@pytest.mark.parametrize("scale", [1e-200, 1e-10, 1.0, 1e10, 1e100])
def test_the_rank_does_not_depend_on_the_scale(scale):
    factor = factored(scale * random_gram(20, 6)).factor
    assert factor.shape == (20, 6)


@on_backends
def test_repeated_rows_do_not_add_to_the_rank():
    K = random_gram(8, 8)
    index = np.array([3, 3, 0, 7, 7, 7, 0])
    factor, pivots = factored(K[np.ix_(index, index)])
    assert factor.shape == (7, 3)
    assert sorted(index[pivots]) == [0, 3, 7]


@on_backends
@pytest.mark.parametrize("n", [1, 4])
def test_the_zero_matrix_has_no_columns(n):
    result = factored(np.zeros((n, n)))
    assert result.factor.shape == (n, 0)
    assert result.pivots.shape == (0,)
    assert result.triangle.shape == (0, 0)


@on_backends
def test_a_zero_row_stays_zero():
    K = random_gram(5, 3)
    K[2] = K[:, 2] = 0
    result = factored(K)
    assert (result.factor[2] == 0).all()
    assert 2 not in result.pivots


@on_backends
def test_factoring_does_not_change_the_matrix():
    for K in (random_gram(9, 4), np.asfortranarray(random_gram(9, 4))):
        given = asarray(K)
        pivoted_cholesky(given)
        assert np.array_equal(to_numpy(given), random_gram(9, 4))


@on_backends
@pytest.mark.parametrize(
    "K",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 0.0], [0.0, -1.0]],
        [[-1.0, 0.0], [0.0, -1.0]],
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]],
    ],
    ids=str,
)
def test_an_indefinite_matrix_is_refused(K):
    with pytest.raises(NotPositiveSemidefiniteError):
        factored(np.array(K))


@on_backends
@pytest.mark.parametrize("negative", [-1.0, -0.1, -0.01])
@PROPERTY
@given(n=st.integers(2, 25), seed=seeds)
def test_one_negative_eigenvalue_is_refused(negative, n, seed):
    values = np.random.default_rng(seed).uniform(0.1, 1, n)
    values[0] = negative
    with pytest.raises(NotPositiveSemidefiniteError, match=r"no Gram matrix has|is not zero"):
        factored(with_eigenvalues(values, seed))


@on_backends
def test_one_small_negative_entry_on_a_long_diagonal_is_refused():
    K = np.eye(1000)
    K[500, 500] = -1e-3
    with pytest.raises(NotPositiveSemidefiniteError, match="no Gram matrix has"):
        factored(K)


def test_the_error_is_a_value_error():
    assert issubclass(NotPositiveSemidefiniteError, ValueError)


@on_backends
@pytest.mark.parametrize(
    ("kernel", "n", "width"),
    [
        (Gaussian(0.1), 200, 10),  # full rank
        (Linear(), 60, 10),  # rank 10 of 60
        (Tanimoto(), 200, 10),
        (Gaussian(0.3), 500, 3),  # eigenvalues that decay to nothing
        (Gaussian(0.001), 500, 10),
        (Linear(), 500, 10),
    ],
    ids=repr,
)
def test_a_gram_matrix_rounded_to_single_precision_is_tolerated(kernel, n, width):
    rows = np.random.default_rng(0).normal(size=(n, width))
    K = block(kernel, (rows > 0).astype(float) if isinstance(kernel, Tanimoto) else rows)
    factor = factored(K.astype(np.float32).astype(np.float64)).factor
    np.testing.assert_allclose(factor @ factor.T, K, rtol=0, atol=1e-5 * np.abs(K).max())


# Shifted systems


@on_backends
@PROPERTY
@given(n=st.integers(1, 20), rank=st.integers(0, 20), shift=st.floats(0.01, 10), seed=seeds)
def test_a_shifted_system_is_solved(n, rank, shift, seed):
    K = random_gram(n, rank, seed)
    B = np.random.default_rng(seed + 1).normal(size=(n, 3))
    solver = ShiftedCholesky(asarray(K), shift)
    expected = np.linalg.solve(K + shift * np.eye(n), B)
    scale = np.abs(B).max() / shift
    np.testing.assert_allclose(to_numpy(solver.solve(asarray(B))), expected, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(to_numpy(solver.solve(asarray(B[:, 0]))), expected[:, 0], rtol=0, atol=1e-10 * scale)


@on_backends
def test_solving_changes_neither_the_matrix_nor_the_right_side():
    K, B = random_gram(6, 4), np.random.default_rng(1).normal(size=(6, 2))
    there = asarray(K.copy()), asarray(B.copy())
    solver = ShiftedCholesky(there[0], 0.5)
    first = to_numpy(solver.solve(there[1]))
    assert np.array_equal(to_numpy(solver.solve(there[1])), first)
    assert np.array_equal(to_numpy(there[0]), K)
    assert np.array_equal(to_numpy(there[1]), B)


@on_backends
def test_a_shift_that_does_not_make_the_matrix_definite_is_refused():
    K = asarray(np.diag([2.0, -1.0]))
    with pytest.raises(NotPositiveSemidefiniteError, match="not positive definite"):
        ShiftedCholesky(K, 0.5)
    np.testing.assert_allclose(to_numpy(ShiftedCholesky(K, 1.5).solve(asarray(np.ones(2)))), [1 / 3.5, 1 / 0.5])


# Leading eigenpairs


def assert_eigenpairs(M, values, vectors, k):
    """Values as NumPy has them, orthonormal vectors, and M v = μ v for each pair."""
    largest = np.linalg.eigvalsh(M)[::-1]
    scale = max(largest[0], np.finfo(float).tiny)
    assert values.shape == (k,)
    assert vectors.shape == (len(M), k)
    np.testing.assert_allclose(values, largest[:k], rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(M @ vectors, vectors * values, rtol=0, atol=1e-9 * scale)


SPECTRA = {
    "decaying": 0.9 ** np.arange(200),
    "slow": np.linspace(1, 0.5, 200),
    "rank 3": np.r_[3.0, 2.0, 1.0, np.zeros(197)],
    "rank 20": np.r_[np.arange(20, 0, -1.0), np.zeros(180)],
    "clustered": np.r_[np.ones(4), 0.5 + 1e-9 * np.arange(4), 0.1 * np.ones(4), 1e-3 * np.ones(188)],
    "far apart": 10.0 ** -np.arange(0, 20, 0.1),
    "identity": np.ones(200),
}
every_spectrum = pytest.mark.parametrize("spectrum", SPECTRA)


def start_block(size, width, seed=0):
    return np.random.default_rng(seed).standard_normal((size, width))


@on_backends
@PROPERTY
@given(size=st.integers(1, 25), rank=st.integers(0, 25), data=st.data(), seed=seeds)
def test_small_problems_agree_with_numpy(size, rank, data, seed):
    M = random_gram(size, rank, seed)
    k = data.draw(st.integers(1, size))
    assert_eigenpairs(M, *leading(M, k), k)


@on_backends
def test_repeated_largest_eigenvalues_are_all_found():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(20, 200))
        k = int(rng.integers(1, size // 2))
        repeats = int(rng.integers(1, size + 1))
        M = with_eigenvalues(np.r_[np.ones(repeats), np.full(size - repeats, 0.5)], seed)
        assert_eigenpairs(M, *leading(M, k), k)


def test_a_subset_that_lapack_does_not_find_is_found_all_the_same(monkeypatch):
    M = with_eigenvalues(1 / np.arange(1, 1101.0))
    subsets = []

    def fails_on_subsets(M, subset_by_index=None, **options):
        if subset_by_index is not None:
            subsets.append(subset_by_index)
            raise LinAlgError("Internal Error.")
        return eigh(M, **options)

    monkeypatch.setattr(linalg, "lapack_eigh", fails_on_subsets)
    assert_eigenpairs(M, *top_eigh(lambda B: M @ B, 1100, 7, NUMPY), 7)
    assert subsets == [(1093, 1099)]


@on_backends
@every_spectrum
@pytest.mark.parametrize("k", [1, 5, 10])
def test_block_krylov_agrees_with_numpy(spectrum, k):
    M = with_eigenvalues(SPECTRA[spectrum])
    pairs = krylov(M, start_block(200, k + 10), k)
    assert pairs is not None
    assert_eigenpairs(M, *pairs, k)


@on_backends
def test_block_krylov_separates_clusters():
    """Within a cluster any basis will do; the projector onto it is unique."""
    M = with_eigenvalues(SPECTRA["clustered"])
    _, expected = np.linalg.eigh(M)
    _, vectors = krylov(M, start_block(200, 18), 8)
    for cluster in (slice(0, 4), slice(4, 8)):
        reference = expected[:, ::-1][:, cluster]
        np.testing.assert_allclose(vectors[:, cluster] @ vectors[:, cluster].T, reference @ reference.T, atol=1e-8)


@on_backends
def test_block_krylov_of_the_zero_operator():
    values, vectors = krylov(np.zeros((100, 100)), start_block(100, 12), 3)
    np.testing.assert_array_equal(values, np.zeros(3))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)


@on_backends
def test_block_krylov_of_a_diagonal_operator_of_low_rank():
    diagonal = np.r_[1.0, 1.0, 1.0, np.zeros(197)]
    pairs = krylov(np.diag(diagonal), start_block(200, 15), 5)
    assert pairs is not None
    assert_eigenpairs(np.diag(diagonal), *pairs, 5)


@on_backends
def test_block_krylov_finds_the_pairs_where_its_blocks_fill_the_whole_space():
    """Six blocks of 28 columns in 150 dimensions: what they span is everything."""
    M = with_eigenvalues(0.97 ** np.arange(150))
    pairs = krylov(M, start_block(150, 28), 18)
    assert pairs is not None
    assert_eigenpairs(M, *pairs, 18)


@on_backends
def test_block_krylov_gives_up_where_it_cannot_converge():
    M = with_eigenvalues(SPECTRA["slow"])
    assert krylov(M, start_block(200, 12), 5, depth=2, max_restarts=1) is None


@on_backends
def test_block_krylov_converges_with_more_restarts():
    M = with_eigenvalues(SPECTRA["slow"])
    pairs = krylov(M, start_block(200, 12), 5, depth=2, max_restarts=1000)
    assert_eigenpairs(M, *pairs, 5)


def test_block_krylov_works_on_any_array_namespace():
    M = with_eigenvalues(SPECTRA["decaying"])
    start = start_block(200, 14)
    values, vectors = block_krylov_eigh(lambda B: M @ B, start, 4)
    strict_M = array_api_strict.asarray(M)
    strict = block_krylov_eigh(lambda B: strict_M @ B, array_api_strict.asarray(start), 4)
    strict_values, strict_vectors = (np.from_dlpack(part) for part in strict)
    np.testing.assert_allclose(strict_values, values, rtol=1e-12)
    np.testing.assert_allclose(strict_vectors @ strict_vectors.T, vectors @ vectors.T, atol=1e-9)


@pytest.fixture
def iterate(monkeypatch):
    """Let top_eigh iterate on small problems; return how often it did with success."""
    successes = []

    def counted(*arguments):
        pairs = block_krylov_eigh(*arguments)
        successes.append(pairs is not None)
        return pairs

    monkeypatch.setattr(linalg, "DENSE_LIMIT", 50)
    monkeypatch.setattr(linalg, "block_krylov_eigh", counted)
    return successes


@on_backends
@pytest.mark.parametrize("spectrum", [name for name in SPECTRA if name != "identity"])
@pytest.mark.parametrize("k", [1, 5])
def test_the_iterated_answer_is_the_dense_answer(iterate, monkeypatch, spectrum, k):
    M = with_eigenvalues(SPECTRA[spectrum])
    values, vectors = leading(M, k)
    assert iterate == [True]
    assert_eigenpairs(M, values, vectors, k)
    monkeypatch.setattr(linalg, "DENSE_LIMIT", 10**6)
    dense_values, dense_vectors = leading(M, k)
    assert iterate == [True]  # no second iteration
    np.testing.assert_allclose(values, dense_values, rtol=0, atol=1e-10 * dense_values[0])
    if spectrum in ("decaying", "slow"):  # simple eigenvalues: the vectors are unique, and so is their sign here
        np.testing.assert_allclose(vectors, dense_vectors, atol=1e-6)


@on_backends
def test_the_iteration_never_forms_the_matrix(iterate):
    M = with_eigenvalues(SPECTRA["decaying"])
    product, widths = operator(M), []
    top_eigh(lambda B: widths.append(B.shape[1]) or product(B), 200, 5, current_compute())
    assert iterate == [True]
    assert max(widths) < 200


@on_backends
def test_many_eigenvectors_are_found_densely(iterate):
    M = with_eigenvalues(SPECTRA["decaying"])
    assert_eigenpairs(M, *leading(M, 40), 40)
    assert iterate == []


@on_backends
def test_where_the_iteration_gives_up_the_dense_answer_is_returned(monkeypatch):
    M = with_eigenvalues(SPECTRA["slow"])
    dense = leading(M, 5)
    hasty = partial(block_krylov_eigh, depth=2, max_restarts=1)
    assert hasty(operator(M), asarray(start_block(200, 15)), 5) is None
    monkeypatch.setattr(linalg, "DENSE_LIMIT", 50)
    monkeypatch.setattr(linalg, "block_krylov_eigh", hasty)
    values, vectors = leading(M, 5)
    assert np.array_equal(values, dense[0])
    assert np.array_equal(vectors, dense[1])


@on_backends
@pytest.mark.parametrize("limit", [50, 10**6], ids=["iterated", "dense"])
def test_the_largest_entry_of_each_eigenvector_is_positive(monkeypatch, limit):
    monkeypatch.setattr(linalg, "DENSE_LIMIT", limit)
    M = with_eigenvalues(SPECTRA["decaying"])
    _, vectors = leading(M, 6)
    assert (vectors[np.argmax(np.abs(vectors), axis=0), np.arange(6)] > 0).all()


@on_backends
def test_eigenvalues_that_rounding_made_negative_are_zero():
    M = with_eigenvalues(np.r_[1.0, np.zeros(9)])
    values, _ = leading(M, 10)
    assert (values >= 0).all()
    np.testing.assert_allclose(values, np.r_[1.0, np.zeros(9)], atol=1e-14)


@pytest.mark.parametrize("rank", [5, 100])
def test_an_iteration_finds_no_directions_beyond_the_rank(rank):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((rank, 2600))
    moment = Moment(((rows, 1 / rank),))
    subspace = moment.top(129)
    assert len(subspace.eigenvalues) == rank
    np.testing.assert_allclose(subspace.directions.T @ subspace.directions, np.eye(rank), atol=1e-10)
