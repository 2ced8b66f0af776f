"""Predictions of graphs as barycenters of known ones, by optimal transport."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from psilearn._backend import explain_missing, to_numpy
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn.embedding import Embedding
from psilearn.kernels import Graph

MAX_NODES = 1000  # of a barycenter: time and memory grow with the square and the cube of its nodes
MIN_EDGE = 0.5  # the smallest entry of an averaged adjacency matrix that is an edge


def fgw_barycenters(
    Z: Array, embedding: Embedding, *, n_graphs: int = 10, n_nodes: int | None = None, trade_off: float = 0.5
) -> list[Graph]:
    """Return Fused Gromov–Wasserstein barycenters of the landmarks of predictions. Needs ``psilearn[graph]``.

    A prediction is a combination G*z = Σ β_l ψ(s_l) of landmark outputs s_l. The barycenter of the landmarks with the
    largest positive weights β_l, scaled to sum to one, is a graph with averaged labels and edges: a node gets the label
    with the largest share, and an edge is where the averaged adjacency is at least one half, with the most frequent
    label of edges among these landmarks. It ignores negative weights, and POT finds a local optimum only: it is a
    cheap guess that needs no candidates, and in general not the nearest output.

    Parameters
    ----------
    Z : array of shape (q, p)
        The predicted embeddings z(x), as :meth:`psilearn.OEL.embed` returns them.
    embedding : Embedding
        The output embedding of the model, ``model.embedding_``, on graphs.
    n_graphs : int, default=10
        The largest number of landmarks of a barycenter.
    n_nodes : int, default=None
        The number of nodes of the barycenters. None stands for the rounded weighted mean of the landmarks' numbers.
    trade_off : float, default=0.5
        The weight of edges, from 0 (labels only) to 1 (edges only).

    Returns
    -------
    list of Graph
        One graph per prediction, which need not be connected.

    See Also
    --------
    local_search : Edits the nearest candidates, and compares exact distances.
    psilearn.metrics.fgw_distance : The distance.

    References
    ----------
    Brogat-Motte, Flamary, Brouard, Rousu and d'Alché-Buc, *Learning to predict graphs with fused Gromov-Wasserstein
    barycenters*, 2022.

    Examples
    --------
    >>> from psilearn import IOKR
    >>> from psilearn.decoding import fgw_barycenters
    >>> from psilearn.kernels import Gaussian, Graph, WeisfeilerLehman
    >>> graphs = [Graph("CCO", [(0, 1), (1, 2)]), Graph("NNN", [(0, 1), (1, 2), (0, 2)])]
    >>> model = IOKR(Gaussian(9.0), WeisfeilerLehman(1), alpha=1e-6).fit([[0.0], [1.0]], graphs)
    >>> [sorted(graph.node_labels) for graph in fgw_barycenters(model.embed([[0.0], [1.0]]), model.embedding_)]
    [['C', 'C', 'O'], ['N', 'N', 'N']]
    """
    with explain_missing("fgw_barycenters needs POT: pip install 'psilearn[graph]'."):
        from ot.gromov import fgw_barycenters as solve
    limit = validation.check_count(n_graphs, "n_graphs")
    size = None if n_nodes is None else validation.check_count(n_nodes, "n_nodes")
    if size is not None and size > MAX_NODES:
        raise ValueError(f"n_nodes must be at most {MAX_NODES}; got {size}.")
    weight = validation.check_fraction(trade_off, "trade_off")
    if not isinstance(embedding, Embedding):
        raise TypeError(f"embedding must be an Embedding, such as model.embedding_; got {type(embedding).__name__}.")
    landmarks = list(embedding.landmarks)
    if not landmarks or not all(isinstance(item, Graph) for item in landmarks):
        raise TypeError("embedding must be that of a model whose outputs are graphs.")
    queries = validation.check_array_of_numbers(Z, "Z", ndim=2)
    basis = to_numpy(embedding.basis)
    if queries.shape[1] != basis.shape[1]:
        raise ValueError(
            f"Z must have shape (q, {basis.shape[1]}), one predicted embedding per row; got {queries.shape}."
        )
    weights = queries @ basis.T
    return [_barycenter(landmarks, row, limit, size, weight, solve) for row in weights]


def _barycenter(
    landmarks: list[Graph], weights: Array, limit: int, size: int | None, trade_off: float, solve: Any
) -> Graph:
    """Return the barycenter of the landmarks with the largest weights."""
    chosen = np.argsort(-weights, kind="stable")[:limit]
    chosen = chosen[weights[chosen] > 0] if weights.max() > 0 else chosen[:1]
    graphs = [landmarks[i] for i in chosen]
    shares = np.abs(weights[chosen]) / np.abs(weights[chosen]).sum() if len(chosen) > 1 else np.ones(1)
    n_nodes = size or round(float(shares @ [len(graph) for graph in graphs]))
    labels = list(dict.fromkeys(label for graph in graphs for label in graph.node_labels))
    known = [np.array([[float(label == other) for other in labels] for label in g.node_labels]) for g in graphs]
    adjacency = [graph.adjacency().astype(float) for graph in graphs]
    uniform = [np.full(len(graph), 1 / len(graph)) for graph in graphs]
    start = min(range(len(graphs)), key=lambda i: abs(len(graphs[i]) - n_nodes))
    first = {"init_C": adjacency[start], "init_X": known[start]} if len(graphs[start]) == n_nodes else {}
    shared, mean = solve(
        n_nodes, known, adjacency, uniform, shares.tolist(), trade_off, random_state=0, warmstartT=False, **first
    )
    bonds = Counter(label for graph in graphs for *_, label in graph.edges)
    bond = bonds.most_common(1)[0][0] if bonds else None
    rows, columns = np.nonzero(np.triu(np.asarray(mean) >= MIN_EDGE, 1))
    edges = zip(rows.tolist(), columns.tolist(), [bond] * len(rows), strict=True)
    return Graph([labels[i] for i in np.argmax(shared, axis=1)], edges)
