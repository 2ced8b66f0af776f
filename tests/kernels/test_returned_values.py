"""What user functions, matrices and data may not be: each error names the kernel or the argument, and the fix."""

import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR
from psilearn._backend import NUMPY
from psilearn.kernels import Dice, Gaussian, Kemeny, Laplacian, Linear, Pairwise, Precomputed, Tanimoto
from psilearn.landmarks.features import LandmarkFeatures

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 3))


@pytest.mark.parametrize(
    "value",
    [np.ones(2), np.ones((1, 1)), "0.5", b"1", 1j, np.complex128(1), None, [1.0], {"k": 1.0}],
    ids=lambda value: type(value).__name__,
)
def test_a_function_must_return_a_real_number(value):
    def number_of_letters(a, b):
        return value

    kernel = Pairwise(number_of_letters)
    message = rf"kernel function .*number_of_letters must return one real number.*got {type(value).__name__}"
    for evaluate in (kernel, kernel.diag, kernel.gram, lambda A: kernel(A, ["c"]), lambda A: kernel.paired(A, A)):
        with pytest.raises(TypeError, match=message):
            evaluate(["a", "b"])


@pytest.mark.parametrize("value", [1, True, Fraction(1), np.float32(1), np.int8(1), np.array(1.0)], ids=repr)
def test_any_real_number_is_a_value(value):
    np.testing.assert_array_equal(Pairwise(lambda a, b: value)(["a", "b"]), np.ones((2, 2)))


def test_a_tensor_without_axes_is_a_number():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(Pairwise(lambda a, b: torch.tensor(2.0))(["a", "b"]), np.full((2, 2), 2.0))


def product_of_other_entries(a, b):
    return float(a[0] * b[1] + a @ b)


def test_a_function_must_be_symmetric():
    with pytest.raises(
        ValueError, match=r"function product_of_other_entries is not symmetric: it returns .* for objects"
    ):
        Pairwise(product_of_other_entries).gram(X)
    for model in (IOKR(product_of_other_entries), IOKR(Gaussian(0.1), product_of_other_entries)):
        with pytest.raises(ValueError, match="not symmetric"):
            model.fit(X, Y)


@pytest.mark.parametrize("place", [(0, 5), (19, 3), (12, 4)], ids=str)
def test_an_asymmetric_matrix_is_found_with_landmarks(place):
    """Every pair of an object and a landmark is compared, not those among the landmarks only."""
    index, matrix = np.arange(20), Gaussian(0.1)(Y)
    features = LandmarkFeatures.of(Precomputed(matrix), index[:5], "input", NUMPY)
    features.columns(index, NUMPY)
    matrix[place] += 0.5
    with pytest.raises(ValueError, match=r"Precomputed.*not symmetric: .* differ by up to 0\.5"):
        features.columns(index, NUMPY)


class Directed(Linear):
    """A user's kernel that depends on the order of its arguments, but not among the first objects."""

    def _block(self, A, B, compute):
        K = super()._block(A, B, compute)
        return K if B is A else K + A[:, :1]


def test_an_asymmetric_kernel_is_found_with_landmarks():
    for model in (IOKR(Directed(), input_landmarks=5), IOKR(Gaussian(0.1), Directed(), output_landmarks=5)):
        with pytest.raises(ValueError, match=r"Directed.*not symmetric"):
            model.fit(X, Y)


@pytest.mark.parametrize("matrix", [np.eye(2) * 1j, np.eye(2).astype("m8[s]"), np.eye(2).astype(str)], ids=str)
def test_a_precomputed_matrix_holds_real_numbers(matrix):
    with pytest.raises(ValueError, match=r"matrix of Precomputed must hold real numbers; got dtype"):
        Precomputed(matrix)([0, 1])


def test_a_masked_precomputed_matrix():
    with pytest.raises(TypeError, match=r"matrix is a masked array with 1 masked entries.*matrix\.filled"):
        Precomputed(np.ma.masked_equal(np.eye(2) + np.array([[0, 2], [0, 0]]), 2))([0, 1])


ON_ROWS = [Linear(), Gaussian(0.1), Laplacian(0.1), Dice(), Tanimoto(), Kemeny(), Linear().normalized()]
NOT_NUMBERS = {
    "complex": (np.ones((20, 3), complex), ValueError, r"Complex data not supported: y has dtype complex128"),
    "complex CSR": (sparse.csr_matrix(np.ones((20, 3), complex)), ValueError, "Complex data not supported: y has"),
    "dates": (np.full((20, 3), "2020-01-01", "M8[D]"), ValueError, r"y holds dates .*datetime64\[D\].*timedelta64"),
    "durations": (np.full((20, 3), 5, "m8[s]"), ValueError, r"y holds durations .*y / numpy\.timedelta64"),
    "masked": (np.ma.masked_greater(Y, 0.0), TypeError, r"y is a masked array .*y\.filled\(value\)"),
}


@pytest.mark.parametrize("case", NOT_NUMBERS)
@pytest.mark.parametrize("kernel", ON_ROWS, ids=repr)
def test_rows_are_real_numbers(kernel, case):
    rows, error, message = NOT_NUMBERS[case]
    with pytest.raises(error, match=message):
        kernel.check(rows, "y")


@pytest.mark.parametrize("case", NOT_NUMBERS)
def test_estimators_name_the_argument(case):
    rows, error, message = NOT_NUMBERS[case]
    with pytest.raises(error, match=message):
        IOKR().fit(X, rows)
    with pytest.raises(error, match=re.sub(r"\by\b", "X", message)):
        IOKR().fit(rows, Y)
    model = IOKR().fit(X, Y)
    with pytest.raises(error, match=r"candidates|outputs"):
        model.predict(X, candidates=rows)


def test_complex_tensors():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"X has dtype torch\.complex64"):
        Linear().check(torch.ones((2, 2), dtype=torch.complex64), "X")


def test_masked_objects_are_rejected_by_every_kernel():
    for kernel in (Precomputed(np.eye(3)), Pairwise(min)):
        with pytest.raises(TypeError, match="X is a masked array"):
            kernel.check(np.ma.masked_equal([0, 1, 2], 1), "X")


@pytest.mark.parametrize("gamma", [0.01, 1.0, 20.0, 1e3])
def test_rounding_in_single_precision_is_no_asymmetry(gamma):
    """The two blocks of a pair of collections have different centers, so that their rounding errors differ."""
    A = RNG.normal(size=(200, 30)) + 3 * RNG.normal(size=(200, 1))
    compute = NUMPY.with_dtype(np.float32)
    LandmarkFeatures.of(Gaussian(gamma), A[:40], "input", compute).columns(A, compute)
