"""Data of any scale: values and orders under powers of two are the same, or an error says to rescale."""

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, OEL
from psilearn._backend import current_compute, to_numpy
from psilearn.kernels import Gaussian, Laplacian, Linear, Polynomial
from tests.problems import precision

on_backends = pytest.mark.usefixtures("backend")
by_precision = pytest.mark.parametrize("dtype", [np.float64, np.float32])
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(30, 3)), RNG.normal(size=(6, 3))
Y, CANDIDATES = RNG.normal(size=(30, 4)), RNG.normal(size=(12, 4))
KERNELS = [Linear(), Polynomial(degree=2, coef0=0.0), Gaussian(), Laplacian(), Linear().normalized()]
EXPONENTS = (-1000, -600, -533, -480, -140, -71, -63, 40, 64, 130, 505, 600)


@on_backends
@by_precision
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_the_median_width_follows_the_scale(kernel, dtype):
    with precision(dtype):
        expected = to_numpy(kernel.fit(Y)(Y, CANDIDATES))
        for exponent in (-480, -140, -71, 40, 130, 480):
            A, B = 2.0**exponent * Y, 2.0**exponent * CANDIDATES
            np.testing.assert_allclose(to_numpy(kernel.fit(A)(A, B)), expected, atol=1e-5)
            csr = sparse.csr_matrix(A), sparse.csr_matrix(B)
            np.testing.assert_allclose(to_numpy(kernel.fit(csr[0])(*csr)), expected, atol=1e-5)


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS[:3] + KERNELS[4:] + [2 * Linear(), Linear() + Linear()], ids=repr)
def test_squares_that_underflow_are_an_error(kernel, form):
    A = form(Y * 1e-200)
    with pytest.raises(ValueError, match=r"([Mm]ultiply|[Rr]escale) the data by a constant"):
        kernel.fit(A).gram(A)


def test_zeros_do_not_underflow():
    for kernel in (Linear(), Linear().normalized(), Polynomial(coef0=0.0)):
        np.testing.assert_array_equal(kernel.gram(np.zeros((3, 2))), 0)


@on_backends
def test_a_block_below_the_range_of_single_precision_is_an_error():
    with precision(np.float32):
        with pytest.raises(ValueError, match=r"out of the range of float32.*dtype='float64'"):
            Linear()(1e-20 * Y, 1e-20 * CANDIDATES)
        small = to_numpy(Linear()(1e-20 * Y, CANDIDATES))  # against rows of ordinary size
        assert small.dtype == current_compute().dtype
        np.testing.assert_allclose(small * 1e20, Y @ CANDIDATES.T, atol=1e-4)


def test_cosines_of_rows_that_are_too_small_are_an_error():
    with pytest.raises(ValueError, match=r"([Mm]ultiply|[Rr]escale) the data by a constant"):
        Linear().normalized()(np.array([[1.0, 2.0], [1e-170, 1e-170]]))
    with pytest.raises(ValueError, match=r"([Mm]ultiply|[Rr]escale) the data by a constant"):
        Linear().normalized().diag(np.array([[1.0, 2.0], [1e-160, 1e-160]]))


def test_distances_that_overflow_are_an_error():
    with pytest.raises(ValueError, match="divide them by a constant"):
        Linear().squared_distances(np.array([[1e200], [0.0]]))


def order_of_candidates(model, factor):
    """Return the order of all candidates for each new input, or None if a ValueError says to rescale."""
    try:
        model.fit(X, factor * Y)
        return model.predict_topk(X_NEW, k=len(CANDIDATES), candidates=factor * CANDIDATES).indices
    except ValueError as error:
        assert "by a constant" in str(error)
        return None


@pytest.mark.parametrize("device", [None, "cpu"])
@by_precision
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("options", [{}, {"output_landmarks": 12}], ids=["exact", "landmarks"])
def test_the_order_of_candidates_does_not_depend_on_the_scale_of_the_outputs(kernel, dtype, device, options):
    if device is not None:
        pytest.importorskip("torch")
    for Estimator, extra in ((IOKR, {}), (OEL, {"n_components": 3})):
        model = Estimator(Gaussian(0.2), kernel, alpha=1e-3, dtype=dtype.__name__, device=device, **extra, **options)
        expected = order_of_candidates(model, 1.0)
        assert expected is not None
        for exponent in EXPONENTS:
            order = order_of_candidates(model, 2.0**exponent)
            if order is not None:
                np.testing.assert_array_equal(order, expected)
