"""Metrics of graphs by optimal transport."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psilearn._backend import explain_missing
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.kernels.graph import Graph, WeisfeilerLehman, as_graphs
from psilearn.kernels.graph.graph_arrays import to_arrays
from psilearn.metrics.mean import Mean, check_same_length

MAX_DEPTH = 3  # of the neighborhoods that are compared for the start of a coupling


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
