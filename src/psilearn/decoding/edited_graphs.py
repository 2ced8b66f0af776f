"""All graphs that differ from a graph by one edit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from math import inf
from typing import Any

from psilearn._utils import validation
from psilearn.kernels import Graph

Pair = tuple[int, int]
Edges = dict[Pair, Hashable]
Edited = tuple[list[Hashable], Edges, bool]


class GraphEdits:
    """The graphs that differ from a given one by one edit, for :func:`local_search`.

    The edits are: a node or an edge gets another label; two nodes swap their labels; an edge is added, is removed, or
    moves one of its ends to another node; a node is added at a node or inside of an edge; a node with one or two
    neighbors is removed, in the second case with an edge between them instead. The number of edits is
    O(m² · labels) for m nodes. A subclass restricts them by :meth:`is_valid`.

    Parameters
    ----------
    node_labels : sequence of hashable
        The labels that nodes may get.
    edge_labels : sequence of hashable, default=(None,)
        The labels that edges may get.
    max_nodes : int, default=None
        The largest number of nodes of an edited graph. None is no limit.
    connected : bool, default=True
        Whether edited graphs must be connected.

    See Also
    --------
    local_search : Edit graphs while they come closer to a prediction.
    psilearn_chem.MoleculeEdits : Edits to valid molecules.

    Examples
    --------
    >>> from psilearn.decoding import GraphEdits
    >>> from psilearn.kernels import Graph
    >>> [graph.node_labels for graph in GraphEdits("CO", max_nodes=2)(Graph("CC", [(0, 1)]))]
    [('O', 'C'), ('C', 'O'), ('C',)]
    """

    def __init__(
        self,
        node_labels: Sequence[Hashable],
        edge_labels: Sequence[Hashable] = (None,),
        *,
        max_nodes: int | None = None,
        connected: bool = True,
    ) -> None:
        self.node_labels = node_labels
        self.edge_labels = edge_labels
        self.max_nodes = max_nodes
        self.connected = connected

    def __call__(self, graph: Graph) -> list[Graph]:
        """Return the edited graphs.

        Parameters
        ----------
        graph : Graph
            The graph.

        Returns
        -------
        list of Graph
            The graphs that differ from it by one edit and are valid, without repetitions.

        See Also
        --------
        is_valid : Which graphs are returned.

        Examples
        --------
        >>> from psilearn.decoding import GraphEdits
        >>> from psilearn.kernels import Graph
        >>> len(GraphEdits("CNO", [1, 2], max_nodes=3)(Graph("CC", [(0, 1, 1)])))
        21
        """
        _check_labels(self.node_labels, "node_labels")
        _check_labels(self.edge_labels, "edge_labels")
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a psilearn.kernels.Graph; got {type(graph).__name__}.")
        limit = None if self.max_nodes is None else validation.check_count(self.max_nodes, "max_nodes")
        connected = validation.check_bool(self.connected, "connected")
        labels, edges = list(graph.node_labels), {(i, j): label for i, j, label in graph.edges}
        found: dict[Graph, None] = {}
        must_check = connected and not _is_connected(labels, edges)  # otherwise only edits that remove an edge
        for new_labels, new_edges, removes_edge in self._edits(labels, edges, limit):
            if self.is_valid(new_labels, new_edges) and (
                not (must_check or (connected and removes_edge)) or _is_connected(new_labels, new_edges)
            ):
                found[Graph._of(tuple(new_labels), new_edges)] = None
        found.pop(graph, None)
        return list(found)

    def is_valid(self, node_labels: list[Hashable], edges: Edges) -> bool:
        """Return whether a graph may be the result of an edit; a subclass restricts it.

        Parameters
        ----------
        node_labels : list of hashable
            The labels of the nodes.
        edges : dict of (int, int) to hashable
            The labels of the edges, by their nodes.

        Returns
        -------
        bool
            True.

        See Also
        --------
        psilearn_chem.MoleculeEdits : Edits to valid molecules.

        Examples
        --------
        >>> from psilearn.decoding import GraphEdits
        >>> GraphEdits("CO").is_valid(["C", "O"], {(0, 1): None})
        True
        """
        return True

    def _edits(self, labels: list[Hashable], edges: Edges, limit: int | None) -> Iterator[Edited]:
        """Yield the labels and edges of edited graphs of at most ``limit`` nodes, and whether an edge was removed."""
        for new_labels in self._label_edits(labels):
            yield new_labels, edges, False
        room = self._room(labels, edges)
        for new_edges in self._new_edges(room, edges):
            yield labels, new_edges, False
        for new_edges in self._edges_without_one(room, edges):
            yield labels, new_edges, True
        if limit is None or len(labels) < limit:
            for new_labels, new_edges in self._insertions(labels, edges, room):
                yield new_labels, new_edges, False
        for new_labels, new_edges in self._deletions(labels, edges):
            if limit is None or len(new_labels) <= limit:
                yield new_labels, new_edges, True

    def _room(self, labels: list[Hashable], edges: Edges) -> list[float]:
        """Return what further edges of each node may weigh together, which saves to make edits that are not valid."""
        return [inf] * len(labels)

    def _weight(self, edge_label: Hashable) -> float:
        """Return what an edge takes of the room of its nodes."""
        return 0

    def _label_edits(self, labels: list[Hashable]) -> Iterator[list[Hashable]]:
        """Yield the labels of the nodes with one label changed, or two labels swapped."""
        for i, present in enumerate(labels):
            for label in self.node_labels:
                if label != present:
                    yield [*labels[:i], label, *labels[i + 1 :]]
        for i, j in combinations(range(len(labels)), 2):
            if labels[i] != labels[j]:
                swapped = list(labels)
                swapped[i], swapped[j] = labels[j], labels[i]
                yield swapped

    def _new_edges(self, room: list[float], edges: Edges) -> Iterator[Edges]:
        """Yield the edges with one of them added, or its label changed."""
        weights = [(label, self._weight(label)) for label in self.edge_labels]
        for i, j in combinations(range(len(room)), 2):
            free = min(room[i], room[j])
            if (i, j) in edges:
                free += self._weight(edges[i, j])
            for label, weight in weights:
                if weight <= free and edges.get((i, j), self) != label:
                    yield {**edges, (i, j): label}

    def _edges_without_one(self, room: list[float], edges: Edges) -> Iterator[Edges]:
        """Yield the edges with one of them removed, or moved to another node at one of its ends."""
        for pair, label in edges.items():
            others = edges.copy()
            del others[pair]
            yield others
            weight = self._weight(label)
            ends = [k for k, free in enumerate(room) if weight <= free and k not in pair]
            for moved in (_ordered(end, k) for end in pair for k in ends):
                if moved not in others:
                    yield {**others, moved: label}

    def _insertions(
        self, labels: list[Hashable], edges: Edges, room: list[float]
    ) -> Iterator[tuple[list[Hashable], Edges]]:
        """Yield the graphs with a new node at a node, or inside of an edge."""
        n = len(labels)
        for label in self.node_labels:
            for i, free in enumerate(room):
                for bond in self.edge_labels:
                    if self._weight(bond) <= free:
                        yield [*labels, label], {**edges, (i, n): bond}
            for (i, j), bond in edges.items():
                others = {pair: value for pair, value in edges.items() if pair != (i, j)}
                yield [*labels, label], {**others, (i, n): bond, (j, n): bond}

    def _deletions(self, labels: list[Hashable], edges: Edges) -> Iterator[tuple[list[Hashable], Edges]]:
        """Yield the graphs without a node that has at most two neighbors, which are joined."""
        for node in range(len(labels)) if len(labels) > 1 else ():
            around = [i + j - node for i, j in edges if node in (i, j)]
            others = {pair: label for pair, label in edges.items() if node not in pair}
            rest = [*labels[:node], *labels[node + 1 :]]
            if len(around) <= 2:
                yield rest, _without(node, others)
            if len(around) == 2 and _ordered(*around) not in others:
                for bond in self.edge_labels:
                    yield rest, _without(node, {**others, _ordered(*around): bond})


def _check_labels(labels: Any, name: str) -> None:
    """Raise unless labels are a sequence of at least one hashable label."""
    if not isinstance(labels, str | list | tuple) or not labels or not all(isinstance(x, Hashable) for x in labels):
        raise ValueError(f"{name} must be a list of at least one hashable label; got {labels!r:.80}.")


def _ordered(i: int, j: int) -> Pair:
    return (i, j) if i < j else (j, i)


def _without(node: int, edges: Edges) -> Edges:
    """Return edges with the numbers of nodes after one that is removed."""
    return {(i - (i > node), j - (j > node)): label for (i, j), label in edges.items()}


def _is_connected(labels: list[Hashable], edges: Edges) -> bool:
    around = [0] * len(labels)
    for i, j in edges:
        around[i] |= 1 << j
        around[j] |= 1 << i
    seen, front = 1, 1
    while front:
        node = front.bit_length() - 1
        fresh = around[node] & ~seen
        seen |= fresh
        front = front & ~(1 << node) | fresh
    return seen == (1 << len(labels)) - 1
