"""Metrics of graphs."""

from __future__ import annotations

from functools import partial
from typing import Any, Self, cast

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn._utils.worker_processes import run_parallel
from psilearn.kernels.graph import as_graphs
from psilearn.metrics.graph_edits import edit_distance
from psilearn.metrics.mean import Mean, check_same_length


class BoundedMean(Mean):
    """Mean of one upper bound per example, with lower bounds that show which of them are exact.

    Parameters
    ----------
    values : array-like of shape (n,)
        An upper bound of the value of each example, which is the value itself if it is exact.
    lower : array-like of shape (n,)
        A lower bound of the value of each example.

    Attributes
    ----------
    values : ndarray of shape (n,)
        The upper bounds, in float64.
    lower : ndarray of shape (n,)
        The lower bounds, in float64.
    is_exact : ndarray of bool of shape (n,)
        Whether both bounds are equal.

    See Also
    --------
    graph_edit_distance : A metric whose values may be bounds.

    Examples
    --------
    >>> from psilearn.metrics import BoundedMean
    >>> BoundedMean([1.0, 3.0], [1.0, 2.0])
    2.0000 ± 1.0000 (upper bounds: 1 of 2 values; the mean is at least 1.5000)
    """

    lower: Array

    def __new__(cls, values: ArrayLike, lower: ArrayLike) -> Self:
        """Compute the mean of the upper bounds and its standard error."""
        mean = cast("Self", super().__new__(cls, values))
        mean.lower = validation.check_array_of_numbers(lower, "lower", ndim=1)
        if mean.lower.shape != mean.values.shape or (mean.lower > mean.values).any():
            raise ValueError(
                f"values and lower must have the same length, and lower may not exceed values; got {values!r:.60} and "
                f"{lower!r:.60}."
            )
        return mean

    @property
    def is_exact(self) -> Any:
        """Whether both bounds of each example are equal."""
        return self.lower == self.values

    def __reduce__(self) -> Any:
        """Return the class and the bounds, from which a pickle is restored."""
        return BoundedMean, (self.values, self.lower)

    def __repr__(self) -> str:
        """Return the mean and its standard error, and how many values are bounds."""
        n_bounds = int(np.sum(~self.is_exact))
        if n_bounds == 0:
            return super().__repr__()
        return (
            f"{super().__repr__()} (upper bounds: {n_bounds} of {len(self.values)} values; "
            f"the mean is at least {self.lower.mean():.4f})"
        )

    __str__ = __repr__


def graph_edit_distance(
    Y_true: Samples, Y_pred: Samples, *, edge_labels: bool = True, time_limit: float = 5.0, n_jobs: int | None = None
) -> BoundedMean:
    """Return the mean graph edit distance of true and predicted graphs.

    The distance is the smallest number of insertions, deletions and label changes of nodes and edges that make a graph
    isomorphic to the other. It is found exactly by a search over assignments of nodes (iterative deepening with lower
    bounds): milliseconds for molecules with nine heavy atoms that are similar, but exponential in the size. A pair
    that takes longer than the time limit counts with the best upper bound; ``is_exact`` of the result shows which.

    Parameters
    ----------
    Y_true : sequence of n graphs
        The true graphs, as :func:`~psilearn.kernels.as_graphs` takes them.
    Y_pred : sequence of n graphs
        The predicted graphs.
    edge_labels : bool, default=True
        Whether the labels of edges count. Without them, any two edges are equal.
    time_limit : float, default=5.0
        The seconds per pair.
    n_jobs : int, default=None
        The number of processes that share the pairs, as in joblib.

    Returns
    -------
    BoundedMean
        The mean over the pairs with its standard error, ``values``, ``lower`` bounds and ``is_exact``.

    See Also
    --------
    kernel_loss : The distance in the space of a kernel on graphs.
    psilearn.kernels.WeisfeilerLehman : A kernel whose distance is related to this one.

    Examples
    --------
    >>> from psilearn.kernels import Graph
    >>> from psilearn.metrics import graph_edit_distance
    >>> ethane, formaldehyde = Graph("CC", [(0, 1, 1)]), Graph("CO", [(0, 1, 2)])
    >>> graph_edit_distance([ethane, ethane], [formaldehyde, ethane])
    1.0000 ± 1.0000
    >>> graph_edit_distance([ethane, ethane], [formaldehyde, ethane], edge_labels=False)
    0.5000 ± 0.5000
    """
    check_same_length(Y_true, Y_pred)
    edge_labels = validation.check_bool(edge_labels, "edge_labels")
    seconds = validation.check_positive(time_limit, "time_limit")
    pairs = zip(as_graphs(Y_true, name="Y_true"), as_graphs(Y_pred, name="Y_pred"), strict=True)
    distance = delayed(partial(edit_distance, edge_labels=edge_labels, seconds=seconds))
    tasks = (distance(first, second) for first, second in pairs)
    found = list(run_parallel(tasks, validation.check_n_jobs(n_jobs)))
    return BoundedMean([item.upper for item in found], [item.lower for item in found])
