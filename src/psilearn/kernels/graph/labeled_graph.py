"""Graphs with labeled nodes and edges, and their conversion from networkx graphs and adjacency matrices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from psilearn._backend import explain_missing
from psilearn._utils.validation import check_rows

Edge = tuple[int, int, Hashable]


@dataclass(frozen=True, slots=True, repr=False)
class Graph:
    """An undirected graph with labeled nodes and labeled edges, immutable and hashable.

    Two graphs are equal if they have the same labels and edges with the same numbering of the nodes. Isomorphic graphs
    with other numberings are different objects, which no kernel distinguishes.

    Parameters
    ----------
    node_labels : sequence of hashable
        The label of each node: text, number, None, or a tuple of these. A text stands for one label per character.
    edges : iterable of (int, int) or (int, int, hashable), default=()
        The two nodes of each edge, in any order, and its label. The label None stands for no label.

    Raises
    ------
    TypeError
        If labels or edges have the wrong type.
    ValueError
        If there is no node, an edge is a loop or repeated, or a node does not exist.

    See Also
    --------
    as_graphs : Convert networkx graphs and adjacency matrices.
    psilearn_chem.molecule_graph : The graph of a molecule.

    Examples
    --------
    >>> from psilearn.kernels import Graph
    >>> formaldehyde = Graph(["C", "O"], [(0, 1, 2)])
    >>> formaldehyde
    Graph(2 nodes, 1 edge)
    >>> formaldehyde.edges
    ((0, 1, 2),)
    """

    node_labels: tuple[Hashable, ...]
    edges: tuple[Edge, ...] = ()

    def __init__(self, node_labels: Sequence[Hashable], edges: Iterable[Sequence[Any]] = ()) -> None:
        try:
            labels = tuple(node_labels)
            hash(labels)
        except TypeError as error:
            raise TypeError(f"node_labels must be a sequence of hashable labels; got {node_labels!r:.80}.") from error
        if not labels:
            raise ValueError("A graph must have at least one node; node_labels is empty.")
        object.__setattr__(self, "node_labels", labels)
        object.__setattr__(self, "edges", _check_edges(edges, len(labels)))

    @classmethod
    def _of(cls, node_labels: tuple[Hashable, ...], edges: dict[tuple[int, int], Hashable]) -> Graph:
        """Return a graph from edges by nodes in ascending order, which are not checked."""
        graph = cls.__new__(cls)
        object.__setattr__(graph, "node_labels", node_labels)
        object.__setattr__(graph, "edges", tuple([(*pair, edges[pair]) for pair in sorted(edges)]))
        return graph

    def __len__(self) -> int:
        return len(self.node_labels)

    def __repr__(self) -> str:
        n, e = len(self.node_labels), len(self.edges)
        return f"Graph({n} node{'s' * (n != 1)}, {e} edge{'s' * (e != 1)})"

    def adjacency(self) -> Any:
        """Return the adjacency matrix, without labels.

        Returns
        -------
        ndarray of bool of shape (n_nodes, n_nodes)
            Whether two nodes are neighbors.

        See Also
        --------
        to_networkx : The graph with its labels.

        Examples
        --------
        >>> from psilearn.kernels import Graph
        >>> Graph(["C", "O"], [(0, 1)]).adjacency()
        array([[False,  True],
               [ True, False]])
        """
        matrix = np.zeros((len(self), len(self)), dtype=bool)
        for i, j, _ in self.edges:
            matrix[i, j] = matrix[j, i] = True
        return matrix

    def relabeled(self, order: Sequence[int]) -> Graph:
        """Return the same graph with its nodes in another order.

        Parameters
        ----------
        order : sequence of int
            The present number of each node of the result, a permutation.

        Returns
        -------
        Graph
            An isomorphic graph.

        See Also
        --------
        adjacency : The adjacency matrix.

        Examples
        --------
        >>> from psilearn.kernels import Graph
        >>> Graph(["C", "O"], [(0, 1)]).relabeled([1, 0]).node_labels
        ('O', 'C')
        """
        nodes = check_rows(order, len(self), "order").tolist()
        if sorted(nodes) != list(range(len(self))):
            raise ValueError(f"order must be a permutation of the {len(self)} nodes; got {order!r:.80}.")
        place = {node: i for i, node in enumerate(nodes)}
        edges = [(place[i], place[j], label) for i, j, label in self.edges]
        return Graph([self.node_labels[node] for node in nodes], edges)

    def to_networkx(self) -> Any:
        """Return the graph as a networkx graph, with labels as the attributes ``label``.

        Returns
        -------
        networkx.Graph
            The graph with the nodes 0, 1, ….

        See Also
        --------
        as_graphs : The opposite conversion.

        Examples
        --------
        >>> from psilearn.kernels import Graph
        >>> Graph(["C", "O"], [(0, 1, 2)]).to_networkx().edges(data="label")
        EdgeDataView([(0, 1, 2)])
        """
        with explain_missing("Graph.to_networkx needs networkx: pip install 'psilearn[graph]'."):
            import networkx
        graph = networkx.Graph()
        graph.add_nodes_from((i, {"label": label}) for i, label in enumerate(self.node_labels))
        graph.add_edges_from((i, j, {"label": label}) for i, j, label in self.edges)
        return graph


def as_graphs(
    graphs: Iterable[Any], *, node_label: str = "label", edge_label: str = "label", name: str = "graphs"
) -> list[Graph]:
    """Convert graphs of other forms to :class:`Graph`.

    Parameters
    ----------
    graphs : iterable of Graph, networkx.Graph or (adjacency, labels)
        The graphs. An adjacency matrix is a symmetric array or sparse matrix, whose entries other than 0 are edges
        with their values as labels; labels are one per node, or None for none. Of undirected networkx graphs the
        attributes of nodes and edges are read.
    node_label : str, default="label"
        The attribute of networkx nodes that is their label. Either all nodes of a graph have it, or none.
    edge_label : str, default="label"
        The attribute of networkx edges that is their label. Either all edges of a graph have it, or none.
    name : str, default="graphs"
        What errors call the collection.

    Returns
    -------
    list of Graph
        The graphs; those that are :class:`Graph` already are unchanged.

    Raises
    ------
    TypeError
        If an item is not a graph in one of these forms.
    ValueError
        If a graph is empty, directed, has loops or labels for some of its nodes only.

    See Also
    --------
    Graph : A graph from labels and edges.
    psilearn_chem.molecule_graph : The graph of a molecule.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.kernels import as_graphs
    >>> as_graphs([(np.array([[0, 2], [2, 0]]), ["C", "O"])])[0].edges
    ((0, 1, 2),)
    """
    if isinstance(graphs, str | bytes | Graph) or not isinstance(graphs, Iterable):
        raise TypeError(f"{name} must be a sequence of graphs; got {type(graphs).__name__}.")
    if isinstance(graphs, np.ndarray) and graphs.ndim == 0:
        raise TypeError(f"{name} must be a sequence of graphs; got an array without dimensions.")
    return [_as_graph(item, node_label, edge_label, f"{name}[{i}]") for i, item in enumerate(graphs)]


def _as_graph(item: Any, node_label: str, edge_label: str, name: str) -> Graph:
    """Return one graph; errors name it."""
    if isinstance(item, Graph):
        return item
    try:
        if hasattr(item, "is_directed") and hasattr(item, "nodes"):
            return _from_networkx(item, node_label, edge_label)
        if isinstance(item, list | tuple) and len(item) == 2 and np.ndim(_dense(item[0])) == 2:
            return _from_adjacency(*item)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error
    raise TypeError(
        f"{name} must be a Graph, a networkx graph or a pair (adjacency, labels); got {type(item).__name__}."
    )


def _from_networkx(graph: Any, node_label: str, edge_label: str) -> Graph:
    if graph.is_directed() or graph.is_multigraph():
        raise ValueError("only undirected graphs without parallel edges are supported; use G.to_undirected().")
    number = {node: i for i, node in enumerate(graph.nodes)}
    labels = _attributes([data for _, data in graph.nodes(data=True)], node_label, "nodes")
    ends = [(number[i], number[j]) for i, j in graph.edges]
    edge_labels = _attributes([data for *_, data in graph.edges(data=True)], edge_label, "edges")
    return Graph(labels, [(*pair, label) for pair, label in zip(ends, edge_labels, strict=True)])


def _attributes(items: list[dict[str, Any]], attribute: str, kind: str) -> list[Any]:
    """Return one attribute of all nodes or edges, None if none of them has it."""
    missing = sum(attribute not in item for item in items)
    if 0 < missing < len(items):
        raise ValueError(f"{missing} of {len(items)} {kind} have no attribute {attribute!r}.")
    return [item.get(attribute) for item in items]


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _from_adjacency(matrix: Any, labels: Sequence[Hashable] | None) -> Graph:
    matrix = np.asarray(_dense(matrix))
    if matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
        raise ValueError(f"the adjacency matrix must be square and symmetric; got shape {matrix.shape}.")
    labels = [None] * len(matrix) if labels is None else labels
    if len(labels) != len(matrix):
        raise ValueError(f"{len(labels)} labels do not fit an adjacency matrix of {len(matrix)} nodes.")
    rows, columns = np.nonzero(np.triu(matrix))
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return Graph(plain, zip(rows.tolist(), columns.tolist(), matrix[rows, columns].tolist(), strict=True))


def _check_edges(edges: Iterable[Sequence[Any]], n_nodes: int) -> tuple[Edge, ...]:
    """Return the edges with the lower node first, sorted."""
    checked: dict[tuple[int, int], Hashable] = {}
    try:
        items = list(edges)
    except (TypeError, NotImplementedError) as error:
        raise TypeError(f"edges must be a sequence of (i, j) or (i, j, label); got {type(edges).__name__}.") from error
    for edge in items:
        i, j, label = _unpack_edge(edge, n_nodes)
        if (i, j) in checked:
            raise ValueError(f"edges must be different; the one between nodes {i} and {j} occurs twice.")
        checked[i, j] = label
    return tuple((i, j, checked[i, j]) for i, j in sorted(checked))


def _unpack_edge(edge: Sequence[Any], n_nodes: int) -> Edge:
    """Return the two nodes of an edge in ascending order, and its label."""
    try:
        i, j, label = edge if len(edge) == 3 else (*edge, None)
        hash(label)
    except (TypeError, ValueError) as error:
        raise TypeError(f"edges must be (i, j) or (i, j, label) with hashable labels; got {edge!r:.80}.") from error
    for node in (i, j):
        if isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < n_nodes:
            raise ValueError(f"edges must join two of the {n_nodes} nodes of node_labels, from 0 on; got {edge!r:.80}.")
    if i == j:
        raise ValueError(f"edges must not be loops, as at node {i}: remove it, or make it part of the node's label.")
    return int(min(i, j)), int(max(i, j)), label
