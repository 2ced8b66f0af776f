"""The edit distance of two small labeled graphs, exactly: iterative deepening over assignments of their nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from operator import ne
from time import monotonic

from psilearn.kernels.graph import Graph

CLOCK_STEPS = 256  # search steps between two looks at the clock


class _TimeUpError(Exception):
    """The time limit of a pair is reached."""


@dataclass(frozen=True)
class EditDistance:
    """The smallest number of edits between two graphs, or bounds of it if the time was not enough."""

    lower: int
    upper: int

    @property
    def is_exact(self) -> bool:
        """Whether the distance is known."""
        return self.lower == self.upper


def edit_distance(first: Graph, second: Graph, *, edge_labels: bool, seconds: float) -> EditDistance:
    """Return the smallest number of insertions, deletions and label changes of nodes and edges.

    A node that is deleted or inserted has no edges. As a change costs no more than a deletion and an insertion, some
    shortest sequence of edits changes as many nodes as possible: it assigns every node of the smaller graph to a node
    of the larger one. The number of edits is then the number of nodes and of pairs of nodes whose labels differ, where
    a pair that is not an edge has a label of its own.

    Assignments are searched depth first for 0, 1, 2, … more edits than a lower bound; partial ones are left out if the
    edits so far and a lower bound of the others exceed this number.
    """
    small, large = sorted((first, second), key=len)
    node_codes = _number({*first.node_labels, *second.node_labels})
    edge_codes = _number({label if edge_labels else True for graph in (first, second) for *_, label in graph.edges})
    search = _Search(
        _Side.of(small, node_codes, edge_codes, edge_labels),
        _Side.of(large, node_codes, edge_codes, edge_labels),
        monotonic() + seconds,
    )
    everything = search.large.all_nodes
    lower, upper = search.bound(0, [], everything, search.large.edges_inside(everything)), search.greedy()
    try:
        while lower < upper and not search.succeeds(lower):
            lower += 1
    except _TimeUpError:
        return EditDistance(lower, upper)
    return EditDistance(lower, lower)


def _number(labels: set[Hashable]) -> dict[Hashable, int]:
    """Return a number for each label."""
    return {label: code for code, label in enumerate(labels)}


@dataclass(frozen=True)
class _Side:
    """One graph as the search uses it: labels are numbers, and sets of nodes are bits of an int."""

    labels: list[int]
    with_label: list[int]  # for each label, the nodes that have it
    pairs: list[list[int]]  # the label of the edge of two nodes, -1 for no edge
    around: list[list[int]]  # for each edge label, the neighbors of each node

    @classmethod
    def of(
        cls, graph: Graph, node_codes: dict[Hashable, int], edge_codes: dict[Hashable, int], edge_labels: bool
    ) -> _Side:
        order = _connected_order(graph)
        place = {node: i for i, node in enumerate(order)}
        labels = [node_codes[graph.node_labels[node]] for node in order]
        with_label = [sum(1 << i for i, code in enumerate(labels) if code == k) for k in range(len(node_codes))]
        pairs = [[-1] * len(order) for _ in order]
        around = [[0] * len(order) for _ in edge_codes]
        for a, b, label in graph.edges:
            i, j = place[a], place[b]
            code = edge_codes[label if edge_labels else True]
            pairs[i][j] = pairs[j][i] = code
            around[code][i] |= 1 << j
            around[code][j] |= 1 << i
        return cls(labels, with_label, pairs, around)

    @property
    def all_nodes(self) -> int:
        return (1 << len(self.labels)) - 1

    def labels_in(self, nodes: int) -> list[int]:
        """Return how many nodes of a set have each label."""
        return [(mask & nodes).bit_count() for mask in self.with_label]

    def edges_at(self, node: int, others: int) -> list[int]:
        """Return how many edges with each label a node has to a set of others."""
        return [(masks[node] & others).bit_count() for masks in self.around]

    def edges_inside(self, nodes: int) -> list[int]:
        """Return the number of edges with each label in a set of nodes."""
        return [
            sum((mask & nodes).bit_count() for i, mask in enumerate(masks) if nodes >> i & 1) // 2
            for masks in self.around
        ]


@dataclass
class _Search:
    """Assignments of the nodes 0, 1, … of the small graph to nodes of the large one.

    ``inside`` counts the edges of the large graph between free nodes.
    """

    small: _Side
    large: _Side
    deadline: float
    steps: int = field(default=0)

    def __post_init__(self) -> None:
        n = len(self.small.labels)
        rests = [self.small.all_nodes & ~((1 << t) - 1) for t in range(n + 1)]  # after t assignments
        self._labels = [self.small.labels_in(rest) for rest in rests]
        self._inside = [self.small.edges_inside(rest) for rest in rests]
        self._ends = [[self.small.edges_at(i, rest) for i in range(t)] for t, rest in enumerate(rests)]

    def succeeds(self, limit: int) -> bool:
        """Return whether the graphs are at most ``limit`` edits apart."""
        everything = self.large.all_nodes
        return self._extend([], everything, self.large.edges_inside(everything), 0, limit)

    def greedy(self) -> int:
        """Return the number of edits of an assignment that takes the best node each time."""
        assigned: list[int] = []
        free, edits = self.large.all_nodes, 0
        while len(assigned) < len(self.small.labels):
            cost, node = min(self._choices(assigned, free))
            edits, free = edits + cost, free & ~(1 << node)
            assigned.append(node)
        return edits + self._insertions(assigned, free, self.large.edges_inside(free))

    def bound(self, edits: int, assigned: list[int], free: int, inside: list[int]) -> int:
        """Return a lower bound of the edits of all assignments that continue this one."""
        t = len(assigned)
        edits += _unmatched(self._labels[t], self.large.labels_in(free))
        edits += _unmatched(self._inside[t], inside)
        for ends, node in zip(self._ends[t], assigned, strict=True):  # edges between assigned nodes and the rest
            edits += _unmatched(ends, [(masks[node] & free).bit_count() for masks in self.large.around])
        return edits

    def _extend(self, assigned: list[int], free: int, inside: list[int], edits: int, limit: int) -> bool:
        if len(assigned) == len(self.small.labels):
            return edits + self._insertions(assigned, free, inside) <= limit
        self.steps += 1
        if self.steps % CLOCK_STEPS == 0 and monotonic() > self.deadline:
            raise _TimeUpError
        for cost, node in sorted(self._choices(assigned, free)):
            if edits + cost > limit:
                break
            longer, fewer = [*assigned, node], free & ~(1 << node)
            left = [
                count - (masks[node] & fewer).bit_count()
                for count, masks in zip(inside, self.large.around, strict=True)
            ]
            if self.bound(edits + cost, longer, fewer, left) <= limit and self._extend(
                longer, fewer, left, edits + cost, limit
            ):
                return True
        return False

    def _choices(self, assigned: list[int], free: int) -> list[tuple[int, int]]:
        """Return the further edits if the next node is assigned to each free node."""
        i = len(assigned)
        label, pairs = self.small.labels[i], self.small.pairs[i][:i]
        choices = []
        for node, others in enumerate(self.large.pairs):
            if free >> node & 1:
                cost = sum(map(ne, pairs, map(others.__getitem__, assigned)))
                choices.append((cost + (label != self.large.labels[node]), node))
        return choices

    def _insertions(self, assigned: list[int], free: int, inside: list[int]) -> int:
        """Return the edits that insert the free nodes of the large graph with all of their edges."""
        return free.bit_count() + sum(inside) + sum(sum(self.large.edges_at(node, free)) for node in assigned)


def _unmatched(left: list[int], right: list[int]) -> int:
    """Return the edits between two multisets of labels: insertions, deletions and changes."""
    return max(sum(left), sum(right)) - sum(map(min, left, right))


def _connected_order(graph: Graph) -> list[int]:
    """Return the nodes so that each one has many neighbors among those before it."""
    around: list[set[int]] = [set() for _ in graph.node_labels]
    for i, j, _ in graph.edges:
        around[i].add(j)
        around[j].add(i)
    order: list[int] = []
    rest = set(range(len(around)))
    while rest:
        best = max(rest, key=lambda node: (len(around[node] - rest), len(around[node]), -node))
        order.append(best)
        rest.remove(best)
    return order
