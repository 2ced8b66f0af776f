"""Kernels on rows of numbers, dense or CSR, and the Gaussian over the distance of any kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import manhattan_distances

from psilearn._backend import NUMPY, Compute, array_namespace, is_tensor, iter_slices, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, check_not_empty, n_samples, take
from psilearn.kernels.inner_products import (
    TILE,
    each_thread,
    fill_diagonal,
    in_strips,
    inner_products,
    paired_inner_products,
    to_gaussians,
)
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.row_kernel import RowKernel

MEDIAN_ROWS = 1000  # objects that the median distance is computed from: half a million pairs


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

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        return inner_products(A, B, compute)

    def _diag(self, A: Any) -> Any:
        return paired_inner_products(A, A)

    def _paired(self, A: Any, B: Any) -> Any:
        return paired_inner_products(A, B)

    def _paired_squared_distances(self, A: Any, B: Any) -> Any:
        """Return |aᵢ − bᵢ|²; dense rows are subtracted first, so that a common offset costs no digits."""
        if not isinstance(A, np.ndarray) or not isinstance(B, np.ndarray):
            return super()._paired_squared_distances(A, B)
        difference = np.subtract(A, B, dtype=np.float64)
        return np.einsum("ij,ij->i", difference, difference)

    def _distance_parts(self, left: Any, right: Any, compute: Compute) -> tuple[Array, Any, Any]:
        """Return the parts of |a − b|²; dense rows are centered first, so that a common offset costs no digits.

        The center is the mean of ``right``, which stays the same while ``left`` comes in blocks: k(a, b) does not
        depend on the block of a.
        """
        if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
            left, right = _centered_arrays(left, right, compute.dtype)
        elif is_tensor(left) and is_tensor(right):
            left, right = _centered_tensors(left, right, compute.dtype)
        norms = self._diag(left)
        return inner_products(left, right, compute), norms, norms if right is left else self._diag(right)


def _centered_arrays(left: Array, right: Array, dtype: Any) -> tuple[Array, Array]:
    """Return arrays minus the mean of the second, subtracted in float64 and stored in the given dtype."""
    center = right.mean(axis=0, dtype=np.float64)
    centered = np.subtract(right, center, out=np.empty(right.shape, dtype), casting="same_kind")
    if left is right:
        return centered, centered
    return np.subtract(left, center, out=np.empty(left.shape, dtype), casting="same_kind"), centered


def _centered_tensors(left: Any, right: Any, dtype: Any) -> tuple[Any, Any]:
    """Return tensors minus the mean of the second, subtracted in float64 and stored in the given dtype."""
    xp = array_namespace(left)
    others = xp.astype(right, xp.float64)
    center, torch_dtype = xp.mean(others, axis=0), getattr(xp, dtype.name)
    centered = xp.astype(others - center, torch_dtype)
    if left is right:
        return centered, centered
    return xp.astype(xp.astype(left, xp.float64) - center, torch_dtype), centered


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


class _WidthFromData(Kernel):
    """A kernel whose ``gamma`` is a number, or ``"median"``: one over the median distance of the data."""

    gamma: Any

    def fit(self, A: Samples, y: Samples | None = None) -> Self:
        """Set ``gamma_`` if ``gamma="median"``, from at most 1000 evenly spaced objects.

        Parameters
        ----------
        A : array, CSR matrix or sequence of n objects
            The objects.
        y : array, CSR matrix or sequence of n outputs, default=None
            The outputs of the objects, for kernels inside this one that are learned with them.

        Returns
        -------
        Kernel
            The kernel itself.

        See Also
        --------
        Kernel.fit : What other kernels learn from data.

        Examples
        --------
        >>> from psilearn.kernels import Gaussian
        >>> Gaussian(gamma="median").fit([[0.0], [1.0], [2.0]]).gamma_
        1.0
        """
        super().fit(A, y)
        if isinstance(self.gamma, str) and self.gamma == "median":
            check_not_empty(A, "A")
            n = n_samples(A)
            sample = take(A, np.unique(np.linspace(0, n - 1, min(n, MEDIAN_ROWS)).astype(np.intp)))
            distances = to_numpy(self._distances(sample))[np.triu_indices(n_samples(sample), 1)]
            rounding = self._distance_rounding(sample)
            median = np.median(distances) if distances.size else 0.0
            if median <= rounding:  # most pairs are equal: use those that are not
                different = distances[distances > rounding]
                median = np.median(different) if different.size else 1.0
            self.gamma_ = float(1 / median)
        return self

    def _distances(self, A: Samples) -> Array:
        raise TypeError(f"{type(self).__name__} must implement _distances(A), the distances of all pairs.")

    def _distance_rounding(self, A: Samples) -> float:
        """Return the largest distance that rounding errors can give two equal objects."""
        return 0.0

    def _width(self) -> float:
        if isinstance(self.gamma, str) and self.gamma != "median":
            raise ValueError(f'gamma of {type(self).__name__} must be a number > 0 or "median"; got {self.gamma!r}.')
        if not isinstance(self.gamma, str):
            return validation.check_positive(self.gamma, f"gamma of {type(self).__name__}")
        if not hasattr(self, "gamma_"):
            raise ValueError(
                f"{type(self).__name__}(gamma='median') takes its width from data: call fit(A) first, or give a number."
            )
        return self.gamma_


class Gaussian(_WidthFromData):
    """The kernel k(a, b) = exp(−γ d²(a, b)), where d is the distance of another kernel.

    With the linear kernel, the default, d is the Euclidean distance and this is the RBF kernel with γ = 1/(2σ²). With
    any other, d² = k(a,a) + k(b,b) − 2k(a,b): over :class:`Tanimoto` it is exp(−γ(2 − 2T)).

    Parameters
    ----------
    gamma : float or "median", default="median"
        The width γ. "median" is 1 / median d² over the data that is passed to ``fit``.
    base : Kernel, default=None
        The kernel whose distance is used. None stands for :class:`Linear`.

    Attributes
    ----------
    gamma_ : float
        The width found by ``fit``, if ``gamma="median"``.

    See Also
    --------
    Laplacian : The kernel exp(−γ|a − b|₁).
    GaussianTanimoto : The Gaussian over the Tanimoto distance of sets.

    References
    ----------
    Schölkopf and Smola, *Learning with Kernels*, 2002, section 2.3 (d² is conditionally negative definite).

    Examples
    --------
    >>> from psilearn.kernels import Gaussian, Tanimoto
    >>> Gaussian(gamma=0.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> Gaussian(gamma=0.5, base=Tanimoto())([[1, 1, 0]], [[0, 1, 1]]).round(4)
    array([[0.5134]])
    """

    _returns_new_block = True

    def __init__(self, gamma: float | str = "median", base: Kernel | None = None) -> None:
        self.gamma = gamma
        self.base = base

    @property
    def supports_torch(self) -> bool:  # type: ignore[override]
        """Whether the base kernel supports torch."""
        return self._base().supports_torch

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        gamma, base = self._width(), self._base()
        block = to_gaussians(*base._distance_parts(A, B, compute), gamma)
        if B is A:
            fill_diagonal(block, 1)
        return block

    def _diag(self, A: Any) -> Any:
        return np.ones(n_samples(A))

    def _paired(self, A: Any, B: Any) -> Any:
        return np.exp(-self._width() * self._base()._paired_squared_distances(A, B))

    def _place(self, A: Samples, compute: Compute) -> Any:
        return self._base()._place(A, compute)

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        return self._base()._check(A, name, allow_1d)

    def _check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        self._base().check_same_kind(A, name, B, other)

    def _check_pair(self, A: Any, B: Any) -> None:
        self._base()._check_pair(A, B)

    def _base(self) -> Kernel:
        if self.base is None:
            return _EUCLIDEAN
        if not isinstance(self.base, Kernel):
            raise TypeError(f"base of Gaussian must be a kernel or None; got {self.base!r}.")
        return self.base

    def _distances(self, A: Samples) -> Array:
        return self._base().squared_distances(A, compute=NUMPY)

    def _distance_rounding(self, A: Samples) -> float:
        return 1e-12 * float(np.max(self._base().diag(A)))


class _Euclidean(Linear):
    """The default base of :class:`Gaussian`, whose errors name the Gaussian kernel."""

    _label = "Gaussian"


_EUCLIDEAN = _Euclidean()


class Laplacian(_WidthFromData, RowKernel):
    """The kernel k(a, b) = exp(−γ |a − b|₁) with the Manhattan distance.

    Parameters
    ----------
    gamma : float or "median", default="median"
        The width γ. "median" is 1 / median |a − b|₁ over the data that is passed to ``fit``.

    Attributes
    ----------
    gamma_ : float
        The width found by ``fit``, if ``gamma="median"``.

    See Also
    --------
    Gaussian : The kernel exp(−γ|a − b|²).

    Examples
    --------
    >>> from psilearn.kernels import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    _returns_new_block = True

    def __init__(self, gamma: float | str = "median") -> None:
        self.gamma = gamma

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        return in_strips(_manhattan_distances(A, B, compute.dtype), _exponential(self._width()))

    def _diag(self, A: Any) -> Any:
        return np.ones(n_samples(A))

    def _distances(self, A: Samples) -> Array:
        rows = self._prepare(A, "A", NUMPY)
        return _manhattan_distances(rows, rows, np.float64)


def _manhattan_distances(A: Any, B: Any, dtype: Any) -> Array:
    """Return |a − b|₁ for dense or CSR rows, summed in float64, one tile at a time."""
    block = np.empty((A.shape[0], B.shape[0]), dtype)
    columns = list(iter_slices(B.shape[0], TILE))

    def compute_rows(i: slice) -> None:
        for j in columns:
            block[i, j] = manhattan_distances(A[i], B[j])

    each_thread(compute_rows, list(iter_slices(A.shape[0], TILE // 4)))
    return block


def _exponential(gamma: float) -> Callable[[Array, slice], None]:
    """Return a function that turns distances into exp(−γd) in place."""

    def change(strip: Array, part: slice) -> None:
        strip *= -gamma
        np.exp(strip, out=strip)

    return change
