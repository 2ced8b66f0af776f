"""Kernel values against independent definitions: scikit-learn, SciPy, naive loops and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from scipy.spatial.distance import pdist
from scipy.stats import kendalltau
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from psilearn._backend import NUMPY, Compute, is_tensor, to_numpy
from psilearn.kernels import (
    Dice,
    Gaussian,
    GaussianTanimoto,
    Hamming,
    Kemeny,
    Laplacian,
    Lehmer,
    Linear,
    Normalized,
    Pairwise,
    Polynomial,
    Precomputed,
    Product,
    RankingKernel,
    Scaled,
    Sum,
    Tanimoto,
    as_kernel,
)
from psilearn.rankings import to_orders
from tests.kernels.kernel_cases import MATRIX, PROPERTY, Stored, rankings, rows, sets, shared_letters
from tests.problems import block

pytestmark = pytest.mark.usefixtures("backend")

X = np.random.default_rng(0).normal(size=(12, 4))
Z = np.random.default_rng(1).normal(size=(7, 4))
BITS = (np.random.default_rng(2).random((8, 6)) < 0.4).astype(float)


def assert_close(actual, expected, **tolerances):
    np.testing.assert_allclose(to_numpy(actual), to_numpy(expected), **tolerances)


def assert_same(actual, expected):
    np.testing.assert_array_equal(to_numpy(actual), to_numpy(expected))


# Kernels on numbers


@PROPERTY
@given(A=rows)
def test_linear_is_the_inner_product(A):
    expected = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in A] for a in A]
    assert_close(Linear()(A), expected, atol=1e-12)


@PROPERTY
@given(A=rows)
def test_linear_distance_is_euclidean(A):
    expected = np.sum((A[:, None] - A[None]) ** 2, axis=2)
    assert_close(Linear().squared_distances(A), expected, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.01, 0.5, 3.0])
def test_gaussian_is_sklearns_rbf_kernel(gamma):
    assert_close(Gaussian(gamma)(X, Z), rbf_kernel(X, Z, gamma=gamma), rtol=1e-12)
    assert_close(Gaussian(gamma)(X), rbf_kernel(X, gamma=gamma), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.01, 0.5, 3.0])
def test_laplacian_is_sklearns_laplacian_kernel(gamma):
    assert_close(Laplacian(gamma)(X, Z), laplacian_kernel(X, Z, gamma=gamma), rtol=1e-12)


@pytest.mark.parametrize(("degree", "gamma", "coef0"), [(1, 1.0, 0.0), (2, 0.3, 0.0), (3, 1.0, 1.0), (5, 0.2, 2.5)])
def test_polynomial_is_sklearns_polynomial_kernel(degree, gamma, coef0):
    expected = polynomial_kernel(X, Z, degree=degree, gamma=gamma, coef0=coef0)
    assert_close(Polynomial(degree, gamma, coef0)(X, Z), expected, rtol=1e-10, atol=1e-12)


def test_gaussian_over_a_kernel_takes_the_distance_of_that_kernel():
    base = Polynomial(degree=2)
    expected = np.exp(-0.05 * to_numpy(base.squared_distances(X, Z)))
    assert_close(Gaussian(0.05, base=base)(X, Z), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Gaussian(0.5), Laplacian(0.5)], ids=repr)
def test_a_one_dimensional_array_is_a_column(kernel):
    numbers = X[:, 0]
    assert_close(kernel(numbers), kernel(numbers[:, None]))
    assert_close(kernel.diag(numbers), kernel.diag(numbers[:, None]))
    assert_close(kernel(numbers, Z[:, 0]), kernel(numbers[:, None], Z[:, :1]))


# Kernels on sets


def as_sets(A):
    return [set(np.flatnonzero(row)) for row in A]


@PROPERTY
@given(A=sets)
def test_tanimoto_is_intersection_over_union(A):
    expected = [[len(a & b) / len(a | b) if a | b else 1.0 for b in as_sets(A)] for a in as_sets(A)]
    assert_close(Tanimoto()(A), expected, rtol=1e-14)


@PROPERTY
@given(A=sets)
def test_dice_is_twice_the_intersection_over_the_sizes(A):
    expected = [[2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0 for b in as_sets(A)] for a in as_sets(A)]
    assert_close(Dice()(A), expected, rtol=1e-14)


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", [Tanimoto(), Dice()], ids=repr)
def test_the_empty_set_is_like_itself_alone(kernel, form):
    empty, other = form([[0, 0, 0]]), form([[0, 1, 1]])
    assert block(kernel, empty, empty) == [[1.0]]
    assert block(kernel, empty, other) == [[0.0]]
    assert block(kernel, other, empty) == [[0.0]]
    assert kernel.paired(empty, empty) == [1.0]
    assert kernel.paired(empty, other) == [0.0]
    assert kernel.diag(empty) == [1.0]


@PROPERTY
@given(A=sets)
def test_dice_is_a_function_of_tanimoto(A):
    T = Tanimoto()(A)
    assert_close(Dice()(A), 2 * T / (1 + T), rtol=1e-14)


def test_dice_is_the_example_based_f1_score():
    truth, predicted = BITS.copy(), np.roll(BITS, 1, axis=0)
    truth[0], predicted[0], predicted[3] = 0, 0, 0
    expected = f1_score(truth, predicted, average="samples", zero_division=1)
    assert np.mean(Dice().paired(truth, predicted)) == pytest.approx(expected, rel=1e-14)


@PROPERTY
@given(A=sets)
def test_gaussian_tanimoto_closed_form(A):
    assert_close(GaussianTanimoto(0.8)(A), np.exp(-0.8 * (2 - 2 * block(Tanimoto(), A))), rtol=1e-13)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("kernel", [Tanimoto(), Dice()], ids=repr)
def test_sets_may_come_in_any_dtype(kernel, dtype):
    wide = np.ones((2, 300))  # more members than a byte can count
    assert_same(kernel(BITS.astype(dtype)), kernel(BITS))
    assert_same(kernel(wide.astype(dtype)), np.ones((2, 2)))
    assert_same(kernel(sparse.csr_matrix(BITS.astype(dtype))), kernel(BITS))


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(1.0), Tanimoto(), Dice()], ids=repr)
def test_explicit_zeros_and_unsorted_indices_of_csr_rows_do_not_count(kernel):
    messy = sparse.csr_matrix((np.array([1.0, 1.0, 0.0, 0.0]), np.array([2, 0, 1, 3]), np.array([0, 3, 4])), (2, 4))
    assert_close(kernel(messy), kernel(messy.toarray()))
    assert_close(kernel(messy, messy.toarray()), kernel(messy.toarray()))


@pytest.mark.parametrize("kernel", [Tanimoto(), Dice()], ids=repr)
def test_a_member_named_twice_in_a_csr_row_is_no_set(kernel):
    """Duplicate entries of a CSR row add up: this row is [2, 0, 0], which is not 0/1."""
    twice = sparse.csr_matrix((np.ones(2), np.array([0, 0]), np.array([0, 2])), (1, 3))
    with pytest.raises(ValueError, match="0/1"):
        kernel(twice, np.array([[1.0, 0.0, 0.0]]))


# Rankings


def test_kemeny_without_ties_is_kendalls_tau():
    rng = np.random.default_rng(0)
    ranks = np.array([rng.permutation(6) + 1 for _ in range(8)])
    expected = [[kendalltau(a, b).statistic for b in ranks] for a in ranks]
    assert_close(Kemeny()(ranks), expected, atol=1e-14)


@PROPERTY
@given(A=rankings)
def test_kemeny_counts_concordant_less_discordant_pairs(A):
    pairs = [(i, j) for i in range(A.shape[1]) for j in range(i)]
    expected = [[np.mean([np.sign(a[i] - a[j]) * np.sign(b[i] - b[j]) for i, j in pairs]) for b in A] for a in A]
    assert_close(Kemeny(partial=True)(A), expected, atol=1e-14)


def test_kemeny_of_a_ranking_and_its_reverse():
    ranks = np.array([[1, 2, 3, 4], [4, 3, 2, 1]])
    assert_same(Kemeny()(ranks), [[1, -1], [-1, 1]])


class Borda(RankingKernel):
    """The inner product of ranks: a kernel of one's own, which computes in NumPy."""

    def _code(self, ranks):
        return np.nan_to_num(ranks).astype(float)

    def _width(self, n_items):
        return n_items

    def _scale(self, n_items):
        return n_items


def test_own_kernels_on_rankings_compute_in_numpy_for_any_device(backend):
    ranks = np.stack([np.random.default_rng(i).permutation(5) + 1 for i in range(7)])
    expected = ranks @ ranks[:3].T / 5
    assert_close(Borda()(ranks, ranks[:3]), expected, rtol=1e-15)
    assert_close((Kemeny() * Borda())(ranks, ranks[:3]), to_numpy(Kemeny()(ranks, ranks[:3])) * expected, rtol=1e-14)


@pytest.mark.parametrize("kernel", [Kemeny, Hamming, Lehmer])
def test_values_of_rankings_do_not_depend_on_the_blocks(kernel, backend):
    ranks = np.stack([np.random.default_rng(i).permutation(6) + 1 for i in range(50)])
    expected = to_numpy(kernel()(ranks, ranks[:20]))
    with config_context(working_memory=1e-3):
        assert_same(kernel()(ranks, ranks[:20]), expected)


@pytest.mark.parametrize("kernel", [Kemeny, Hamming, Lehmer])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_values_of_rankings_are_those_of_numpy(kernel, precision, backend):
    rng = np.random.default_rng(4)
    ranks = np.stack([rng.permutation(7) + 1 for _ in range(40)])
    partial = np.where(rng.random(ranks.shape) < 0.2, np.nan, ranks)
    partial[:, :2] = [1, 2]
    orders = to_orders(ranks, list("abcdefg"))
    cases = (kernel(), ranks, ranks[:9]), (kernel(partial=True), partial, partial[:9]), (kernel(), orders, orders[:9])
    for chosen, A, B in cases:
        expected = chosen(A, B, compute=Compute.of(precision))
        device = None if backend == "numpy" else backend
        values = chosen(A, B, compute=Compute.of(precision, device))
        assert is_tensor(values) == (device is not None)
        # Counts are exact on every device, but a GPU divides them with one rounding more.
        assert_close(values, expected, rtol=4 * np.finfo(precision).eps, atol=0)
        assert_close(chosen.paired(B, B), [chosen(B, compute=NUMPY)[i, i] for i in range(9)], rtol=1e-15, atol=0)


@pytest.mark.parametrize("kernel", [Kemeny(), Hamming(), Lehmer()], ids=repr)
def test_rankings_may_be_tensors(kernel):
    torch = pytest.importorskip("torch")
    ranks = np.stack([np.random.default_rng(i).permutation(5) + 1 for i in range(6)])
    tensor = torch.from_numpy(ranks)
    assert_same(kernel(tensor), kernel(ranks))
    assert_same(kernel.gram(tensor), kernel.gram(ranks))
    assert_same(kernel.diag(tensor), kernel.diag(ranks))
    assert isinstance(kernel.check(tensor), np.ndarray)


# The median width


@pytest.mark.parametrize(
    ("kernel", "metric"), [(Gaussian(), "sqeuclidean"), (Laplacian(), "cityblock")], ids=["gaussian", "laplacian"]
)
def test_the_median_width_is_one_over_the_median_distance(kernel, metric):
    assert clone(kernel).fit(X).gamma_ == pytest.approx(1 / np.median(pdist(X, metric)))


def test_the_median_width_of_a_base_kernel():
    distances = to_numpy(Tanimoto().squared_distances(BITS))[np.triu_indices(len(BITS), 1)]
    assert GaussianTanimoto("median").fit(BITS).gamma_ == pytest.approx(1 / np.median(distances))


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_where_most_pairs_are_equal_the_median_is_over_those_that_are_not(kernel):
    A = np.zeros((10, 2))
    A[0, 0], A[1, 1] = 1.0, 1.0
    distances = pdist(A, "sqeuclidean" if isinstance(kernel, Gaussian) else "cityblock")
    assert np.median(distances) == 0
    assert clone(kernel).fit(A).gamma_ == pytest.approx(1 / np.median(distances[distances > 0]))


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_data_without_spread_have_width_one(kernel, n):
    assert clone(kernel).fit(np.full((n, 3), 0.5)).gamma_ == 1.0


@pytest.mark.parametrize("n", [5, 50, 300])
def test_rounding_is_no_spread(n):
    """Equal rows are at distance zero, also where k(a,a) + k(b,b) − 2k(a,b) leaves a rounding error."""
    for width in (2, 8, 20, 33, 100, 257):
        constant = np.tile(10 * np.random.default_rng(width).normal(size=width), (n, 1))
        assert Gaussian().fit(constant).gamma_ == 1.0


@pytest.mark.parametrize("n", [9, 50, 300])
def test_rounding_does_not_set_the_width_where_most_pairs_are_equal(n):
    for width in (2, 8, 20, 33, 100, 257):
        mostly = np.tile(10 * np.random.default_rng(width).normal(size=width), (n, 1))
        mostly[0] = 0
        assert Gaussian().fit(mostly).gamma_ == pytest.approx(1 / np.sum(mostly[1] ** 2))


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_the_median_of_many_objects_is_over_evenly_spaced_ones(kernel, monkeypatch):
    monkeypatch.setattr("psilearn.kernels.gaussian.MEDIAN_ROWS", 5)
    A = X[:9]
    assert clone(kernel).fit(A).gamma_ == clone(kernel).fit(A[::2]).gamma_


def test_a_number_needs_no_fit_and_is_not_changed_by_one():
    before = Gaussian(0.7)(X)
    assert_same(Gaussian(0.7).fit(Z)(X), before)


def test_fit_reaches_the_parts_of_a_kernel():
    kernel = (2 * (Gaussian() + Laplacian())).normalized()
    kernel.fit(X)
    parts = kernel.kernel.kernel
    assert parts.left.gamma_ == Gaussian().fit(X).gamma_
    assert parts.right.gamma_ == Laplacian().fit(X).gamma_


@pytest.mark.parametrize("gamma", [0.5, "median"])
def test_fit_reaches_the_kernel_below_a_gaussian(gamma):
    by_parts = Gaussian(gamma, base=Laplacian(Laplacian().fit(X).gamma_)).fit(X)
    assert_close(Gaussian(gamma, base=Laplacian()).fit(X)(X, Z), by_parts(X, Z), rtol=1e-12)


# Kernels made of kernels


def test_operators_are_sums_products_and_multiples_of_blocks():
    k1, k2 = Linear(), Laplacian(0.5)
    K1, K2 = block(k1, X, Z), block(k2, X, Z)
    assert_close((0.5 * k1 + k2)(X, Z), 0.5 * K1 + K2)
    assert_close((k1 * k2)(X, Z), K1 * K2)
    assert_close((k1 * 2)(X, Z), 2 * K1)
    assert_close((2 * k1)(X, Z), 2 * K1)


def test_operators_build_the_named_kernels():
    k1, k2 = Linear(), Tanimoto()
    assert isinstance(k1 + k2, Sum)
    assert isinstance(k1 * k2, Product)
    assert isinstance(3 * k1, Scaled)
    assert isinstance(k1.normalized(), Normalized)
    assert (k1 + k2).left is k1
    assert (k1 + k2).right is k2


@pytest.mark.parametrize("factor", [np.float64(0.5), np.float32(0.5), np.int64(2)], ids=repr)
def test_numpy_numbers_scale_a_kernel_from_both_sides(factor):
    assert_close((factor * Linear())(X), float(factor) * Linear()(X))
    assert_close((Linear() * factor)(X), float(factor) * Linear()(X))


def test_scaling_the_input_is_scaling_the_linear_kernel():
    assert_close((4 * Linear())(X, Z), Linear()(2 * X, 2 * Z))


def test_a_sum_of_linear_kernels_on_halves_is_the_linear_kernel():
    """⟨a, b⟩ splits over the direct sum, and the squared distance with it."""
    whole = Linear().squared_distances(X, Z)
    parts = Linear().squared_distances(X[:, :2], Z[:, :2]) + Linear().squared_distances(X[:, 2:], Z[:, 2:])
    assert_close(whole, parts, atol=1e-12)


def test_a_product_of_gaussians_is_a_gaussian():
    assert_close((Gaussian(0.2) * Gaussian(0.3))(X, Z), Gaussian(0.5)(X, Z), rtol=1e-12)


def test_normalized_is_the_cosine():
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_close(Linear().normalized()(X), unit @ unit.T, atol=1e-14)


def test_normalized_keeps_objects_of_length_zero_at_zero():
    A = np.array([[0.0, 0.0], [3.0, 4.0]])
    kernel = Linear().normalized()
    assert_close(kernel(A), [[0, 0], [0, 1]], atol=1e-15)
    assert_same(kernel.diag(A), [0, 1])
    assert_close(kernel.paired(A, A[::-1]), [0, 0], atol=0)
    assert_close(kernel.squared_distances(A), [[0, 1], [1, 0]], atol=1e-15)


def test_normalizing_twice_is_normalizing_once():
    once = Polynomial(degree=2).normalized()
    assert_close(once.normalized()(X), once(X), rtol=1e-12)


def test_normalized_forgets_the_scale():
    assert_close((7 * Linear()).normalized()(X), Linear().normalized()(X), rtol=1e-12)


# Parameters


def test_nested_parameters_are_set_by_name():
    kernel = Gaussian(gamma=0.5, base=Polynomial(degree=2)).set_params(base__degree=3, gamma=0.1)
    assert_same(kernel(X), Gaussian(gamma=0.1, base=Polynomial(degree=3))(X))
    both = (Gaussian(gamma=0.5) + Laplacian(gamma=0.5)).set_params(left__gamma=0.1, right__gamma=0.2)
    assert_same(both(X), (Gaussian(gamma=0.1) + Laplacian(gamma=0.2))(X))
    scaled = (2 * Gaussian(gamma=0.5)).set_params(kernel__gamma=0.1, scale=3.0)
    assert_same(scaled(X), (3 * Gaussian(gamma=0.1))(X))


def test_nested_parameters_are_listed():
    params = (2 * Gaussian(gamma=0.5) + Tanimoto().normalized()).get_params()
    assert params["left__kernel__gamma"] == 0.5
    assert params["left__scale"] == 2
    assert isinstance(params["right__kernel"], Tanimoto)


# Objects of any kind


def test_precomputed_looks_up_the_matrix():
    kernel = Precomputed(MATRIX)
    A, B = np.array([4, 0, 4]), [1, 6]
    assert_same(kernel(A, B), MATRIX[[4, 0, 4]][:, [1, 6]])
    assert_same(kernel(A[:, None], B), kernel(A, B))  # a column of row numbers
    assert_same(kernel(A.astype(float), B), kernel(A, B))


def test_copies_of_precomputed_share_the_matrix():
    assert clone(Precomputed(MATRIX)).matrix is MATRIX
    assert clone(Gaussian(gamma=1.0, base=Precomputed(MATRIX))).base.matrix is MATRIX
    assert as_kernel(Precomputed(MATRIX), "input_kernel").matrix is MATRIX


def test_precomputed_never_writes_to_the_matrix():
    matrix = MATRIX.copy()
    kernel = Precomputed(matrix)
    everything = np.arange(len(matrix))
    kernel.squared_distances(everything)
    kernel(everything)[:] = np.nan
    assert_same(matrix, MATRIX)


def test_pairwise_calls_the_function_on_each_pair():
    A, B = ["abc", "", "cab"], ["a", "cc"]
    kernel = Pairwise(shared_letters)
    assert_same(kernel(A, B), [[shared_letters(a, b) for b in B] for a in A])


def test_pairwise_evaluates_a_symmetric_block_once_a_pair():
    calls = []
    Pairwise(lambda a, b: calls.append((a, b)) or 1.0)(list("abcd"))
    assert len(calls) == 4 * 5 // 2 + 3  # and three of them in the other order, to check the symmetry
    assert {frozenset(call) for call in calls} == {frozenset((a, b)) for a in "abcd" for b in "abcd"}


def test_squared_distances_do_not_overwrite_what_a_kernel_returns():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    kernel = Stored(matrix)
    first = kernel.squared_distances([0, 1])
    assert_same(matrix, [[2, 1], [1, 3]])
    assert_same(kernel.squared_distances([0, 1]), first)


def test_a_kernel_may_return_integers():
    assert_same(Stored(np.array([[2, 1], [1, 3]])).squared_distances([0, 1]), [[0, 3], [3, 0]])


# Where a kernel comes from


def test_as_kernel_of_none_is_a_gaussian_with_the_median_width():
    kernel = as_kernel(None, "input_kernel")
    assert isinstance(kernel, Gaussian)
    assert kernel.gamma == "median"
    assert_same(kernel.fit(X)(X), Gaussian().fit(X)(X))


def test_as_kernel_of_a_function_is_pairwise():
    kernel = as_kernel(shared_letters, "output_kernel")
    assert isinstance(kernel, Pairwise)
    assert kernel.function is shared_letters


def test_as_kernel_of_a_kernel_is_a_copy():
    own = Gaussian(gamma=0.25, base=Tanimoto())
    kernel = as_kernel(own, "output_kernel")
    assert kernel is not own
    assert kernel.base is not own.base
    assert_same(kernel(BITS), own(BITS))


def test_gram_is_the_block_over_all_objects():
    assert_same(Gaussian(0.5).gram(X, remedy="Use less."), Gaussian(0.5)(X))
    assert_same(Pairwise(shared_letters).gram(["ab", "b"], remedy="Use less."), [[2, 1], [1, 1]])


def test_gram_accepts_rounding_in_the_symmetry():
    matrix = MATRIX.copy()
    matrix[0, 1] *= 1 + 1e-9
    K = to_numpy(Precomputed(matrix).gram(np.arange(7), remedy="Use less."))
    np.testing.assert_array_equal(K, K.T)
    assert_same(np.tril(K), np.tril(matrix))
