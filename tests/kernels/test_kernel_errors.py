"""Bad input to kernels: each error says what came and what is allowed."""

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, OEL
from psilearn.kernels import (
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
    Scaled,
    Tanimoto,
    as_kernel,
)
from tests.kernels.kernel_cases import MATRIX

ON_ROWS = [
    Linear(),
    Polynomial(),
    Gaussian(0.5),
    Laplacian(0.5),
    Tanimoto(),
    Dice(),
    GaussianTanimoto(),
    2 * Linear() + Gaussian(0.5),
    Linear().normalized(),
]
ON_SETS = [Tanimoto(), Dice(), GaussianTanimoto(), 2 * Tanimoto(), Linear() + Dice(), Tanimoto().normalized()]
ON_NUMBERS = [Linear(), Polynomial(), Gaussian(0.5), Laplacian(0.5)]

every_kernel_on_rows = pytest.mark.parametrize("kernel", ON_ROWS, ids=repr)
ROWS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])


# Rows


@every_kernel_on_rows
@pytest.mark.parametrize(("bad", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_rows_must_be_finite(kernel, bad, message):
    A = ROWS.copy()
    A[1, 2] = bad
    with pytest.raises(ValueError, match=message):
        kernel(A)
    with pytest.raises(ValueError, match=message):
        kernel(ROWS, A)
    with pytest.raises(ValueError, match=message):
        kernel.diag(A)


@pytest.mark.parametrize("kernel", [*ON_NUMBERS, Tanimoto()], ids=repr)
def test_entries_of_csr_rows_must_be_finite(kernel):
    with pytest.raises(ValueError, match="NaN"):
        kernel(sparse.csr_matrix([[np.nan, 0.0, 1.0]]))


@every_kernel_on_rows
@pytest.mark.parametrize("empty", [np.empty((0, 3)), []], ids=["array", "list"])
def test_a_collection_of_rows_must_not_be_empty(kernel, empty):
    with pytest.raises(ValueError, match="A is empty"):
        kernel(empty)


@every_kernel_on_rows
@pytest.mark.parametrize("evaluate", [lambda k, A, B: k(A, B), lambda k, A, B: k.paired(A, B)], ids=["block", "paired"])
def test_rows_must_be_of_one_width_and_the_message_names_both_shapes(kernel, evaluate):
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\)"):
        evaluate(kernel, ROWS, np.eye(2, 4))


@every_kernel_on_rows
def test_words_are_no_rows(kernel):
    with pytest.raises(ValueError, match=r"(?s)A cannot be used with .* give a kernel that takes them"):
        kernel(["one", "two"])


@every_kernel_on_rows
@pytest.mark.parametrize("thing", ["word", {"a": 1}, {1, 2}], ids=repr)
def test_a_word_a_dict_and_a_set_are_no_collections(kernel, thing):
    with pytest.raises(TypeError, match="A must be an array or a sequence of objects; got"):
        kernel(thing)


@every_kernel_on_rows
@pytest.mark.parametrize("scalar", [3, 2.5, None, np.array(3.0), np.float64(3.0)], ids=repr)
def test_a_scalar_is_no_collection_of_rows(kernel, scalar):
    with pytest.raises(TypeError, match=f"A must be an array or a sequence of objects; got {type(scalar).__name__}"):
        kernel(scalar)


@every_kernel_on_rows
def test_rows_have_two_dimensions_at_most(kernel):
    with pytest.raises(ValueError, match=r"dim 3|3D"):
        kernel(np.ones((2, 2, 2)))


@pytest.mark.parametrize("kernel", ON_NUMBERS, ids=repr)
def test_one_dimension_is_refused_where_rows_are_demanded(kernel):
    with pytest.raises(ValueError, match="1D array"):
        kernel.check(np.array([1.0, 2.0]), "X", allow_1d=False)


@every_kernel_on_rows
def test_the_message_calls_the_collection_by_its_name(kernel):
    with pytest.raises(ValueError, match="candidates"):
        kernel.check(np.array([[np.nan, 1.0]]), "candidates")


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(1.0), Tanimoto(), Kemeny()], ids=repr)
@pytest.mark.parametrize("others", [1, 5])
def test_paired_collections_have_one_length_and_the_message_names_both(kernel, others):
    with pytest.raises(ValueError, match=rf"\b2\b.*\b{others}\b"):
        kernel.paired(ROWS, np.ones((others, 3)))


def test_paired_words_have_one_length():
    with pytest.raises(ValueError, match="the same length; A has 2 objects, B has 1"):
        Pairwise(lambda a, b: 1.0).paired(["a", "b"], ["a"])


# Sets and rankings


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix])
@pytest.mark.parametrize("bad", [2.0, -1.0, 0.5])
@pytest.mark.parametrize("kernel", ON_SETS, ids=repr)
def test_sets_are_rows_of_zeros_and_ones(kernel, bad, form):
    with pytest.raises(ValueError, match=rf"0/1 rows.*{bad}"):
        kernel(form([[0.0, 1.0], [1.0, bad]]))


@pytest.mark.parametrize("kernel", [Tanimoto(), Dice(), Kemeny()], ids=repr)
def test_sets_and_rankings_are_rows_and_no_numbers(kernel):
    with pytest.raises(ValueError, match="1D array"):
        kernel(np.array([0.0, 1.0]))


def test_rankings_are_dense():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        Kemeny()(sparse.csr_matrix([[1.0, 2.0, 3.0]]))


def test_a_ranking_has_two_items():
    with pytest.raises(ValueError, match=r"at least 2 items.*\(2, 1\)"):
        Kemeny()([[1.0], [1.0]])


# Parameters


@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf, "auto", None, True, [1.0]], ids=repr)
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, GaussianTanimoto, lambda gamma: Polynomial(gamma=gamma)])
def test_gamma_is_a_positive_number(kernel, gamma):
    with pytest.raises(ValueError, match=r"gamma.* must be a (finite )?number > 0"):
        kernel(gamma)(ROWS)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), GaussianTanimoto("median"), 2 * Gaussian()], ids=repr)
def test_the_median_width_needs_fit(kernel):
    with pytest.raises(ValueError, match=r"call fit\(A\) first, or give a number"):
        kernel(ROWS)
    with pytest.raises(ValueError, match=r"call fit\(A\) first, or give a number"):
        kernel.paired(ROWS, ROWS)


@pytest.mark.parametrize("degree", [0, -2, 1.5, "2", None, True], ids=repr)
def test_degree_is_a_positive_integer(degree):
    with pytest.raises(ValueError, match="degree must be an integer ≥ 1; got"):
        Polynomial(degree=degree)(ROWS)


@pytest.mark.parametrize("coef0", [-0.5, np.nan, -np.inf], ids=repr)
def test_coef0_is_not_negative(coef0):
    with pytest.raises(ValueError, match=r"coef0 must be .*≥ 0"):
        Polynomial(coef0=coef0)(ROWS)


@pytest.mark.parametrize("coef0", [np.inf, "1", None], ids=repr)
def test_coef0_is_a_finite_number(coef0):
    with pytest.raises(ValueError, match=r"coef0 must be .*≥ 0"):
        Polynomial(coef0=coef0)(ROWS)


@pytest.mark.parametrize("scale", [0, -2, 0.0, np.nan, np.inf, "2", None], ids=repr)
def test_scale_is_a_positive_number(scale):
    kernel = Scaled(Linear(), scale)
    for evaluate in (kernel, kernel.diag, lambda A: kernel.paired(A, A)):
        with pytest.raises(ValueError, match="scale must be a finite number > 0; got"):
            evaluate(ROWS)


def test_a_negative_multiple_is_no_kernel():
    with pytest.raises(ValueError, match="scale must be a finite number > 0; got -1"):
        (-1 * Linear())(ROWS)


@pytest.mark.parametrize("other", [1, "kernel", None], ids=repr)
def test_only_kernels_add_to_kernels(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        Linear() + other


@pytest.mark.parametrize("other", ["kernel", None], ids=repr)
def test_only_kernels_and_numbers_multiply_kernels(other):
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        Linear() * other


# Objects of any kind


@pytest.mark.parametrize(("places", "extremes"), [([0, 7], "from 0 to 7"), ([-1, 2], "from -1 to 2")])
def test_precomputed_refuses_row_numbers_outside_the_matrix(places, extremes):
    with pytest.raises(ValueError, match=rf"B holds row numbers {extremes}; the matrix has 7 rows"):
        Precomputed(MATRIX)([0], places)
    with pytest.raises(ValueError, match=rf"Y holds row numbers {extremes}"):
        Precomputed(MATRIX).check(places, "Y")


@pytest.mark.parametrize(
    "places",
    [[0.5], [np.nan], ["0"], [True], np.zeros((2, 2), int), [None]],
    ids=["fraction", "NaN", "word", "bool", "two columns", "None"],
)
def test_precomputed_demands_one_integer_an_object(places):
    with pytest.raises(ValueError, match="Y must hold one integer per object"):
        Precomputed(MATRIX).check(places, "Y")
    with pytest.raises(ValueError, match="A must hold one integer per object"):
        Precomputed(MATRIX)(places)


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.ones(4), [[1.0]], None], ids=["2×3", "1-D", "list", "None"])
def test_a_precomputed_matrix_is_a_square_array(matrix):
    with pytest.raises(ValueError, match="matrix must be a square NumPy array; got"):
        Precomputed(matrix)([0])


@pytest.mark.parametrize("kernel", [Pairwise(min), Precomputed(MATRIX)], ids=["pairwise", "precomputed"])
def test_a_collection_must_not_be_empty(kernel):
    with pytest.raises(ValueError, match="Y is empty"):
        kernel.check([], "Y")


@pytest.mark.parametrize("scalar", [3, None, np.array(3), np.float64(3.0)], ids=repr)
@pytest.mark.parametrize("kernel", [Pairwise(min), Precomputed(MATRIX)], ids=["pairwise", "precomputed"])
def test_a_scalar_is_no_collection(kernel, scalar):
    with pytest.raises(TypeError, match=f"Y must be an array or a sequence of objects; got {type(scalar).__name__}"):
        kernel.check(scalar, "Y")


class Nothing(Kernel):
    """A subclass that defines neither of what it must."""


def test_a_kernel_must_define_its_block_and_its_diagonal():
    with pytest.raises(TypeError, match=r"Nothing must implement _block\(A, B, compute\)"):
        Nothing()(ROWS)
    with pytest.raises(TypeError, match=r"Nothing must implement _diag\(A\)"):
        Nothing().diag(ROWS)


# as_kernel and gram


def test_a_kernel_by_name_is_refused():
    with pytest.raises(TypeError, match=r"output_kernel must be a kernel.*got 'rbf'"):
        as_kernel("rbf", "output_kernel")


def test_a_class_is_refused_with_a_hint_to_call_it():
    with pytest.raises(TypeError, match=r"input_kernel must be a kernel.*such as Tanimoto\(\.\.\.\)"):
        as_kernel(Tanimoto, "input_kernel")


class Returns(Kernel):
    """A kernel that returns the same block whatever it is asked."""

    def __init__(self, block):
        self.block = block

    def _block(self, A, B, compute):
        return self.block


def test_gram_refuses_a_block_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"returned a block of shape \(2, 3\); expected \(4, 4\)"):
        Returns(np.ones((2, 3))).gram(list("abcd"), remedy="Use less.")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gram_refuses_values_that_are_not_finite(bad):
    block = np.eye(3)
    block[1, 2] = block[2, 1] = bad
    with pytest.raises(ValueError, match=f"returned {bad} for objects 1 and 2"):
        Returns(block).gram(list("abc"), remedy="Use less.")


@pytest.mark.parametrize("place", [(1, 0), (1099, 0), (1099, 1098)], ids=str)
def test_gram_refuses_an_asymmetric_kernel(place):
    matrix = np.eye(1100)
    matrix[place] = 0.5
    with pytest.raises(ValueError, match=r"Precomputed.*not symmetric.*differ by up to 0\.5"):
        Precomputed(matrix).gram(np.arange(1100), remedy="Use less.")


def test_gram_refuses_what_memory_cannot_hold_before_it_is_computed(monkeypatch):
    monkeypatch.setattr("psilearn._backend.compute.host_available_bytes", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"over 1000 objects needs 8,000,000 bytes.*Use less\."):
        Nothing().gram(range(1000), remedy="Use less.")


def test_a_matrix_that_a_kernel_keeps_is_never_overwritten():
    class Stored(Kernel):
        def __init__(self, matrix):
            self.matrix = matrix

        def _block(self, A, B, compute):
            return self.matrix if B is A else self.matrix[np.ix_(A, B)]

        def _diag(self, A):
            return np.diagonal(self.matrix)[A]

        def __sklearn_clone__(self):
            return self

    F = np.random.default_rng(0).standard_normal((20, 20))
    K = F @ F.T
    kernel = Stored(K.copy())
    index = np.arange(20)
    for options in ({}, {"input_landmarks": 20, "output_landmarks": 20}):
        OEL(Gaussian(0.5), kernel, alpha=1e-3, n_components=3, **options).fit(F[:, :2], index)
        IOKR(kernel, Gaussian(0.5), alpha=1e-3, **options).fit(index, F[:, :2])
        np.testing.assert_array_equal(kernel.matrix, K)
