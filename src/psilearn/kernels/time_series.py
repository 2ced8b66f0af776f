"""Time series of any lengths: the global alignment kernel, computed by tslearn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from psilearn._backend import Compute, explain_missing
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples, check_not_empty, n_samples, take
from psilearn.kernels.kernel import Kernel

MEDIAN_SERIES = 100  # series that a median width is computed from
MEDIAN_POINTS = 20  # points of each of these series


class GlobalAlignment(Kernel):
    """The global alignment kernel of time series: a soft maximum over all alignments of two series, normalized.

    k(a, b) = K(a, b)/√(K(a, a) K(b, b)), where K sums Πκ(a_s, b_t) over all alignments of the points of a with those of
    b, and κ(x, y) = e/(2 − e) with e = exp(−|x − y|²/(2σ²)). Series may have different lengths. Needs tslearn:
    ``pip install 'psilearn[series]'``.

    Cost: O(s t d) operations for two series of s and t points in d dimensions; blocks are computed with NumPy.

    Parameters
    ----------
    sigma : float or "median", default="median"
        The width σ. "median" is the median distance of points of different series times the root of the median length.

    Attributes
    ----------
    sigma_ : float
        The width found by ``fit``, if ``sigma="median"``.

    See Also
    --------
    Curves : Functions on a common grid, with closed-form decoding.

    References
    ----------
    Cuturi, *Fast global alignment kernels*, 2011.

    Examples
    --------
    >>> from psilearn.kernels import GlobalAlignment
    >>> GlobalAlignment(sigma=2.0)([[1, 2, 2, 3]], [[1, 2, 3, 4], [1, 2, 2]]).round(4)  # doctest: +SKIP
    array([[0.6563, 0.7106]])
    """

    def __init__(self, sigma: float | str = "median") -> None:
        self.sigma = sigma

    def fit(self, A: Samples, y: Samples | None = None) -> Self:
        """Set ``sigma_`` if ``sigma="median"``, from at most 100 evenly spaced series.

        Parameters
        ----------
        A : sequence of n series
            The series.
        y : array, CSR matrix or sequence of n outputs, default=None
            Not used.

        Returns
        -------
        GlobalAlignment
            The kernel itself.

        See Also
        --------
        Kernel.fit : What other kernels learn from data.

        Examples
        --------
        >>> from psilearn.kernels import GlobalAlignment
        >>> round(GlobalAlignment().fit([[0.0, 0.0, 0.0, 0.0], [3.0]]).sigma_, 3)
        4.743
        """
        if isinstance(self.sigma, str) and self.sigma == "median":
            A = self.check(A)
            n = n_samples(A)
            sample = take(A, np.unique(np.linspace(0, n - 1, min(n, MEDIAN_SERIES)).astype(np.intp)))
            self.sigma_ = _median_width([_as_points(series) for series in sample])
        return self

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        check_not_empty(A, name)
        dimensions = {_check_series(series, f"{name}[{i}]") for i, series in enumerate(A)}
        if len(dimensions) > 1:
            raise ValueError(f"{name} must be series of points of one dimension; got dimensions {sorted(dimensions)}.")
        return A

    def _check_same_kind(self, A: Samples, name: str, B: Samples, other: str) -> None:
        width, other_width = (_as_points(part[0]).shape[1] for part in (A, B))
        if width != other_width:
            raise ValueError(f"{name} has points of dimension {width}, but {other} of dimension {other_width}.")

    def _check_pair(self, A: Any, B: Any) -> None:
        self._check_same_kind(A, "A", B, "B")

    def _block(self, A: Any, B: Any, compute: Compute) -> Any:
        with explain_missing("GlobalAlignment needs tslearn: pip install 'psilearn[series]'."):
            from tslearn.metrics import cdist_gak
        left = [_as_points(series) for series in A]
        right = None if B is A else [_as_points(series) for series in B]
        return cdist_gak(left, right, sigma=self._width(), be="numpy")

    def _diag(self, A: Any) -> Any:
        return np.ones(n_samples(A))

    def _width(self) -> float:
        if not isinstance(self.sigma, str):
            return validation.check_positive(self.sigma, "sigma")
        if self.sigma != "median":
            raise ValueError(f'sigma of GlobalAlignment must be a number > 0 or "median"; got {self.sigma!r}.')
        if not hasattr(self, "sigma_"):
            raise ValueError("GlobalAlignment(sigma='median') takes its width from data: call fit(A) first.")
        return self.sigma_


def _as_points(series: Any) -> Array:
    """Return a validated series as points (t, d)."""
    points = np.asarray(series, dtype=np.float64)
    return points[:, None] if points.ndim == 1 else points


def _check_series(series: Any, name: str) -> int:
    """Return the dimension of the points of a series; raise if it is empty or contains something else than numbers."""
    points = validation.check_array_of_numbers(series, name)
    if points.ndim > 2:
        raise ValueError(
            f"{name} must be a series of shape (t,) or (t, d), one row per point; got shape {points.shape}."
        )
    return 1 if points.ndim == 1 else int(points.shape[1])


def _median_width(series: list[Array]) -> float:
    """Return the median distance of points of different series times the root of the median length; 1 if it is 0."""
    thinned = [points[np.linspace(0, len(points) - 1, MEDIAN_POINTS).astype(np.intp)] for points in series]
    owner = np.repeat(np.arange(len(series)), MEDIAN_POINTS)
    points = np.concatenate(thinned)
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))[owner[:, None] != owner]
    distances = distances[distances > 0]
    median_length = float(np.median([len(points) for points in series]))
    return float(np.median(distances) * np.sqrt(median_length)) if distances.size else 1.0
