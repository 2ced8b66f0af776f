"""The edit distance of two small labeled graphs, exactly: iterative deepening over assignments of their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
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
    search = _Search(_Side.of(small, edge_labels), _Side.of(large, edge_labels), monotonic() + seconds)
    lower, upper = search.bound(0, [], search.large.all_nodes), search.greedy()
    try:
        while lower < upper and not search.succeeds(lower):
            lower += 1
    except _TimeUpError:
        return EditDistance(lower, upper)
    return EditDistance(lower, lower)


@dataclass(frozen=True)
class _Side:
    """One graph as the search uses it: sets of nodes are bits of an int."""

    labels: list[Hashable]
    pairs: list[list[int]]  # the number of the edge label of two nodes, 0 for no edge
    around: dict[Hashable, list[int]]  # for each edge label, the neighbors of each node

    @classmethod
    def of(cls, graph: Graph, edge_labels: bool) -> _Side:
        order = _connected_order(graph)
        place = {node: i for i, node in enumerate(order)}
        pairs: list[list[Hashable]] = [[None] * len(order) for _ in order]
        around: dict[Hashable, list[int]] = {}
        for a, b, label in graph.edges:
            i, j = place[a], place[b]
            code = (label if edge_labels else True,)
            pairs[i][j] = pairs[j][i] = code
            masks = around.setdefault(code, [0] * len(order))
            masks[i] |= 1 << j
            masks[j] |= 1 << i
        return cls([graph.node_labels[node] for node in order], pairs, around)  # type: ignore[arg-type]

    @property
    def all_nodes(self) -> int:
        return (1 << len(self.labels)) - 1

    def edges_at(self, node: int, others: int) -> dict[Hashable, int]:
        """Return how many edges with each label a node has to a set of others."""
        return {label: (masks[node] & others).bit_count() for label, masks in self.around.items()}

    def edges_inside(self, nodes: int) -> dict[Hashable, int]:
        """Return twice the number of edges with each label in a set of nodes."""
        return {
            label: sum((mask & nodes).bit_count() for i, mask in enumerate(masks) if nodes >> i & 1)
            for label, masks in self.around.items()
        }


@dataclass
class _Search:
    """Assignments of the nodes 0, 1, … of the small graph to nodes of the large one."""

    small: _Side
    large: _Side
    deadline: float
    steps: int = field(default=0)

    def succeeds(self, limit: int) -> bool:
        """Return whether the graphs are at most ``limit`` edits apart."""
        return self._extend([], self.large.all_nodes, 0, limit)

    def greedy(self) -> int:
        """Return the number of edits of an assignment that takes the best node each time."""
        assigned: list[int] = []
        free, edits = self.large.all_nodes, 0
        while len(assigned) < len(self.small.labels):
            cost, node = min(self._choices(assigned, free))
            edits, free = edits + cost, free & ~(1 << node)
            assigned.append(node)
        return edits + self._insertions(free)

    def bound(self, edits: int, assigned: list[int], free: int) -> int:
        """Return a lower bound of the edits of all assignments that continue this one."""
        rest = self.small.all_nodes & ~((1 << len(assigned)) - 1)
        edits += _unmatched(
            Counter(self.small.labels[len(assigned) :]),
            Counter(label for i, label in enumerate(self.large.labels) if free >> i & 1),
        )
        for i, node in enumerate(assigned):  # edges between assigned nodes and the rest
            edits += _unmatched(self.small.edges_at(i, rest), self.large.edges_at(node, free))
        return edits + (_unmatched(self.small.edges_inside(rest), self.large.edges_inside(free)) + 1) // 2

    def _extend(self, assigned: list[int], free: int, edits: int, limit: int) -> bool:
        if len(assigned) == len(self.small.labels):
            return edits + self._insertions(free) <= limit
        self.steps += 1
        if self.steps % CLOCK_STEPS == 0 and monotonic() > self.deadline:
            raise _TimeUpError
        for cost, node in sorted(self._choices(assigned, free)):
            if edits + cost > limit:
                break
            longer, fewer = [*assigned, node], free & ~(1 << node)
            if self.bound(edits + cost, longer, fewer) <= limit and self._extend(longer, fewer, edits + cost, limit):
                return True
        return False

    def _choices(self, assigned: list[int], free: int) -> list[tuple[int, int]]:
        """Return the further edits if the next node is assigned to each free node."""
        i = len(assigned)
        label, pairs = self.small.labels[i], self.small.pairs[i]
        choices = []
        for node in range(len(self.large.labels)):
            if free >> node & 1:
                others = self.large.pairs[node]
                cost = sum(pairs[k] != others[other] for k, other in enumerate(assigned))
                choices.append((cost + (label != self.large.labels[node]), node))
        return choices

    def _insertions(self, free: int) -> int:
        """Return the edits that insert the free nodes of the large graph with all of their edges."""
        inside = sum(self.large.edges_inside(free).values()) // 2
        ends = sum(
            (mask & free).bit_count()
            for masks in self.large.around.values()
            for i, mask in enumerate(masks)
            if not free >> i & 1
        )
        return free.bit_count() + inside + ends


def _unmatched(left: dict[Hashable, int], right: dict[Hashable, int]) -> int:
    """Return the edits between two multisets of labels: insertions, deletions and changes."""
    common = sum(min(count, right.get(label, 0)) for label, count in left.items())
    return max(sum(left.values()), sum(right.values())) - common


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
