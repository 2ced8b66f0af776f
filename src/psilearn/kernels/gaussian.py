"""Kernels of a distance: the Gaussian over the distance of any kernel, and the Laplacian on rows of numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import manhattan_distances

from psilearn._backend import NUMPY, Compute, array_namespace, iter_slices, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, n_samples, take
from psilearn._utils.worker_processes import each_thread
from psilearn.kernels.inner_products import TILE, fill_diagonal
from psilearn.kernels.kernel import Kernel
from psilearn.kernels.linear import Linear
from psilearn.kernels.row_kernel import RowKernel

MEDIAN_ROWS = 1000  # objects that the median distance is computed from: half a million pairs

MAX_FINITE_WIDTH = 1e30  # γ for which 2γ·k(a, b) is in the range of float32 where k ≤ 1


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
            A = self.check(A)
            n = n_samples(A)
            sample = take(A, np.unique(np.linspace(0, n - 1, min(n, MEDIAN_ROWS)).astype(np.intp)))
            self.gamma_ = self._inverse_median(to_numpy(self._distances(sample))[np.triu_indices(n_samples(sample), 1)])
        return self

    def _inverse_median(self, distances: Array) -> float:
        """Return one over the median distance, of the pairs at a distance if most are at none; 1 if all are equal."""
        median = np.median(distances) if distances.size else 0.0
        if median == 0:
            different = distances[distances > 0]
            median = np.median(different) if different.size else 1.0
        with np.errstate(over="ignore"):
            gamma = float(1 / np.float64(median))
        if not 0 < gamma < np.inf:
            raise ValueError(
                f"{type(self).__name__}(gamma='median'): the median distance of the data is {median:.3g}, and its "
                f"inverse is out of the range of float64. Rescale the data by a constant."
            )
        return gamma

    def _distances(self, A: Samples) -> Array:
        """Return the distances of all pairs; that of equal objects is 0, without a rounding error."""
        raise TypeError(f"{type(self).__name__} must implement _distances(A), the distances of all pairs.")

    def _width(self) -> float:
        if isinstance(self.gamma, str) and self.gamma != "median":
            raise ValueError(f'gamma of {type(self).__name__} must be a number > 0 or "median"; got {self.gamma!r}.')
        if not isinstance(self.gamma, str):
            return validation.check_positive(self.gamma, f"gamma of {type(self).__name__}")
        if not hasattr(self, "gamma_"):
            raise ValueError(
                f"{type(self).__name__}(gamma='median') takes its width from data: call fit(A) first, or give a number."
            )
        return validation.check_positive(self.gamma_, f"gamma_ of {type(self).__name__}")


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

    @property
    def _is_always_finite(self) -> bool:  # type: ignore[override]
        return self._base()._is_always_finite and self._width() < MAX_FINITE_WIDTH

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        block = self._base()._gaussians(A, B, self._width(), compute)
        if B is A:
            fill_diagonal(block, 1)
        return block

    def _diag(self, A: Any) -> Any:
        return np.ones(n_samples(A))

    def _paired(self, A: Any, B: Any) -> Any:
        distances = self._base()._paired_squared_distances(A, B)
        return array_namespace(distances).exp(-self._width() * distances)

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
        return self._base()._distances_without_rounding(A)


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
        return _manhattan_distances(A, B, compute.dtype, partial(_exponentials, gamma=self._width()))

    def _diag(self, A: Any) -> Any:
        return np.ones(n_samples(A))

    def _distances(self, A: Samples) -> Array:
        rows = self._prepare(A, "A", NUMPY)
        return _manhattan_distances(rows, rows, np.float64, lambda tile: tile)


def _exponentials(tile: Array, gamma: float) -> Array:
    """Turn distances into exp(−γd) in place."""
    tile *= -gamma
    return np.exp(tile, out=tile)


def _manhattan_distances(A: Any, B: Any, dtype: Any, finish: Callable[[Array], Array]) -> Array:
    """Return ``finish`` of |a − b|₁ for dense or CSR rows, in float64 and one tile at a time, as a block."""
    block = np.empty((A.shape[0], B.shape[0]), dtype)
    columns = list(iter_slices(B.shape[0], TILE))

    def compute_rows(i: slice) -> None:
        for j in columns:
            block[i, j] = finish(manhattan_distances(A[i], B[j]))

    each_thread(compute_rows, list(iter_slices(A.shape[0], TILE // 4)))
    return block
