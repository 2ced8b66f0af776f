"""Kernels from inner products of rows of numbers, dense or CSR."""

from __future__ import annotations

from typing import Any

from psilearn._backend import NUMPY, Compute, tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, has_nonzero
from psilearn.kernels import euclidean
from psilearn.kernels.inner_products import combine_rows, in_strips, inner_products, paired_inner_products
from psilearn.kernels.row_kernel import RowKernel


class Linear(RowKernel):
    """The inner product k(a, b) = ⟨a, b⟩; |ψ(a) − ψ(b)| is the Euclidean distance.

    See Also
    --------
    Gaussian : The kernel exp(−γ|a − b|²).
    Polynomial : Powers of the inner product.

    Examples
    --------
    >>> from psilearn.kernels import Linear
    >>> Linear()([[1, 2], [0, 1]])
    array([[5., 2.],
           [2., 1.]])
    """

    supports_torch = True
    _returns_new_block = True
    _has_pre_image = True

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        return inner_products(A, B, compute)

    def _diag(self, A: Any) -> Any:
        return paired_inner_products(A, A)

    def _paired(self, A: Any, B: Any) -> Any:
        return paired_inner_products(A, B)

    def _paired_squared_distances(self, A: Any, B: Any) -> Any:
        return euclidean.paired_squared_distances(A, B)

    def _squared_distances(self, left: Any, right: Any, compute: Compute) -> Array:
        return euclidean.squared_distances(left, right, compute)

    def _gaussians(self, left: Any, right: Any, gamma: float, compute: Compute) -> Array:
        return euclidean.gaussians(left, right, gamma, compute)

    def _pre_image(self, A: Any, weights: Array) -> Array:
        return combine_rows(A, weights)

    def _underflows(self, A: Samples) -> bool:
        return has_nonzero(A)

    def _distances_without_rounding(self, A: Samples) -> Array:
        return euclidean.distances_without_rounding(self._prepare(tensor_to_numpy(A), "A", NUMPY))


class Polynomial(RowKernel):
    """The polynomial kernel k(a, b) = (γ⟨a, b⟩ + c₀)^degree.

    Parameters
    ----------
    degree : int, default=3
        The exponent, at least 1.
    gamma : float, default=1.0
        The factor γ of the inner product, greater than 0.
    coef0 : float, default=1.0
        The constant c₀, at least 0.

    See Also
    --------
    Linear : The inner product itself.

    Examples
    --------
    >>> from psilearn.kernels import Polynomial
    >>> Polynomial(degree=2)([[1, 2]], [[0, 1]])
    array([[9.]])
    """

    supports_torch = True
    _returns_new_block = True

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        return self._power(inner_products(A, B, compute))

    def _diag(self, A: Any) -> Any:
        return self._power(Linear()._diag(A))

    def _paired(self, A: Any, B: Any) -> Any:
        return self._power(Linear()._paired(A, B))

    def _underflows(self, A: Samples) -> bool:
        return has_nonzero(A) and self.coef0 == 0

    def _power(self, products: Array) -> Array:
        degree = validation.check_count(self.degree, "degree")
        gamma = validation.check_positive(self.gamma, "gamma")
        coef0 = validation.check_non_negative(self.coef0, "coef0")  # else the kernel is not positive semi-definite

        def change(strip: Array, part: slice) -> None:
            strip *= gamma
            strip += coef0
            base = 1.0 * strip
            for bit in f"{degree:b}"[1:]:  # squares and products: much cheaper than powers of floats
                strip *= strip
                if bit == "1":
                    strip *= base

        return in_strips(products, change)
