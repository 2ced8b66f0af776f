"""Functions on a grid: the inner product of L², or one that compares smoothed functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.kernels.feature_kernel import FeatureKernel
from psilearn.kernels.inner_products import combine_rows
from psilearn.kernels.row_kernel import MAX_NUMBER, check_rows

MAX_POINTS = 5000  # of a grid with a width, whose matrix is decomposed


class Curves(FeatureKernel):
    """The kernel k(f, g) = ∫∫ f(s) κ(s, t) g(t) ds dt of functions on a grid, and ∫ f(t) g(t) dt without a width.

    Integrals are sums by the trapezoidal rule. With a width, κ(s, t) = exp(−(s − t)²/(2 width²)) compares smoothed
    functions, so that a small shift is a small distance. A combination of functions is a function: pre-images are the
    combinations themselves, and ``predict_mean`` predicts curves that do not occur in the data.

    Parameters
    ----------
    grid : array of shape (d,), default=None
        The points t at which functions are given, ascending. None stands for d points from 0 to 1 at equal distances.
    width : float, default=None
        The width of κ, in the unit of the grid. None compares values at the same point only.

    See Also
    --------
    Linear : Functions as rows, without weights of the points.
    psilearn.OEL.predict_mean : The predicted function.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import Curves
    >>> t = np.linspace(0, 1, 101)
    >>> Curves(t)([t, np.ones(101)]).round(3)
    array([[0.333, 0.5  ],
           [0.5  , 1.   ]])
    """

    normalize = False
    base = None
    _has_pre_image = True

    def __init__(self, grid: Any = None, width: float | None = None) -> None:
        self.grid = grid
        self.width = width

    def _check(self, A: Samples, name: str, allow_1d: bool) -> Samples:
        rows = check_rows(A, name, "must be functions on a grid, one row of values per function", accept_sparse=False)
        self._points(int(rows.shape[1]), name)
        return rows

    def _points(self, n_points: int, name: str = "A") -> Array:
        """Return the validated grid."""
        if self.grid is None:
            points = np.linspace(0, 1, n_points)
        else:
            points = validation.check_array_of_numbers(self.grid, "grid", ndim=1)
        if len(points) != n_points:
            raise ValueError(f"grid has {len(points)} points, but {name} has {n_points} columns, one per point.")
        if np.abs(points).max() > MAX_NUMBER:
            raise ValueError(f"grid contains numbers beyond {MAX_NUMBER:g}: scale it.")
        if (np.diff(points) <= 0).any():
            raise ValueError(f"grid must be ascending, without equal points; got {points!r:.80}.")
        if self.width is not None and validation.check_positive(self.width, "width") and n_points > MAX_POINTS:
            raise ValueError(f"A width needs at most {MAX_POINTS} points; the grid has {n_points}. Thin it out.")
        return points

    def _features(self, A: Any) -> Any:
        A = tensor_to_numpy(A)
        points = self._points(int(A.shape[1]))
        weights = _trapezoid_weights(points)
        if self.width is None:
            return A * np.sqrt(weights)
        with np.errstate(over="ignore"):  # of points that are very far from each other: exp(−∞) = 0
            smoothing = np.exp(-(((points[:, None] - points) / float(self.width)) ** 2) / 2)
        values, vectors = np.linalg.eigh(smoothing)
        return (A * weights) @ (vectors * np.sqrt(np.maximum(values, 0)))

    def _key(self, A: Any) -> Any:
        return None

    def _pre_image(self, A: Any, weights: Array) -> Array:
        return combine_rows(A, weights)


def _trapezoid_weights(points: Array) -> Array:
    """Return the weights of the trapezoidal rule; 1 for a single point."""
    if len(points) == 1:
        return np.ones(1)
    steps = np.diff(points)
    return (np.concatenate([[0.0], steps]) + np.concatenate([steps, [0.0]])) / 2
