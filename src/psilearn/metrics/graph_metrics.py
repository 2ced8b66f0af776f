"""Metrics of graphs: edit distances, and distances by optimal transport."""

from __future__ import annotations

from functools import partial
from typing import Any, Self, cast

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike

from psilearn._backend import explain_missing
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn._utils.worker_processes import run_parallel
from psilearn.kernels.graph import Graph, WeisfeilerLehman, as_graphs
from psilearn.kernels.graph.graph_arrays import to_arrays
from psilearn.metrics.graph_edits import edit_distance
from psilearn.metrics.scores import Mean, check_same_length

MAX_DEPTH = 3  # of the neighborhoods that are compared for the start of a coupling


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
        if mean.lower.shape != mean.values.shape or not (mean.lower <= mean.values).all():
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


def fgw_distance(Y_true: Samples, Y_pred: Samples, *, trade_off: float = 0.5) -> Mean:
    """Return the mean Fused Gromov–Wasserstein distance of true and predicted graphs. Needs ``psilearn[graph]``.

    Each graph is a uniform distribution on its nodes. A coupling π of the nodes of two graphs costs
    (1 − t) Σ π_ij [labels differ] + t Σ π_ij π_kl (A_ik − B_jl)² with the adjacency matrices A and B; labels of edges
    are ignored. POT finds local minima over couplings, from the uniform one and from one that matches nodes with the
    same neighborhoods; the smaller one is an upper bound of the distance.

    Parameters
    ----------
    Y_true : sequence of n graphs
        The true graphs, as :func:`~psilearn.kernels.as_graphs` takes them.
    Y_pred : sequence of n graphs
        The predicted graphs.
    trade_off : float, default=0.5
        The weight t of edges, from 0 (labels only) to 1 (edges only).

    Returns
    -------
    Mean
        The mean of the costs over the pairs, with its standard error.

    See Also
    --------
    graph_edit_distance : The number of edits, exactly.
    psilearn.decoding.fgw_barycenters : Graphs that are near to several others by this distance.

    References
    ----------
    Vayer, Chapel, Flamary, Tavenard and Courty, *Optimal transport for structured data with application on graphs*,
    2019.

    Examples
    --------
    >>> from psilearn.kernels import Graph
    >>> from psilearn.metrics import fgw_distance
    >>> chain = Graph("CCO", [(0, 1), (1, 2)])
    >>> fgw_distance([chain, chain], [chain, Graph("CCN", [(0, 1), (1, 2)])])
    0.0833 ± 0.0833
    """
    with explain_missing("fgw_distance needs POT: pip install 'psilearn[graph]'."):
        import ot
    check_same_length(Y_true, Y_pred)
    weight = validation.check_fraction(trade_off, "trade_off")
    pairs = zip(as_graphs(Y_true, name="Y_true"), as_graphs(Y_pred, name="Y_pred"), strict=True)
    return Mean([_cost(first, second, weight, ot) for first, second in pairs])


def _cost(first: Graph, second: Graph, weight: float, ot: Any) -> float:
    """Return the lowest cost of the couplings that POT finds for two graphs."""
    masses = [np.full(len(graph), 1 / len(graph)) for graph in (first, second)]
    by_depth = _differences(first, second)
    if weight == 0:
        return float(ot.emd2(*masses, by_depth[0]))
    matrices = [graph.adjacency().astype(float) for graph in (first, second)]
    solve = partial(ot.gromov.fused_gromov_wasserstein2, by_depth[0], *matrices, *masses, alpha=weight)
    return max(0.0, min(float(solve(G0=start)) for start in (None, ot.emd(*masses, by_depth.sum(axis=0)))))


def _differences(first: Graph, second: Graph) -> Any:
    """Return whether the Weisfeiler–Lehman labels of two nodes differ at each depth, (depths, n, m)."""
    graphs = to_arrays([first, second])
    labels = WeisfeilerLehman()._labels(graphs, MAX_DEPTH)
    codes = [(part[: len(first)], part[len(first) :]) for part in labels]
    return np.array([(left[:, None] != right[None, :]).astype(float) for left, right in codes])
