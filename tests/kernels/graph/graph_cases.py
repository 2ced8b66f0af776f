"""Strategies for graphs, and features of graphs by enumeration of substructures."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st

from psilearn.kernels.graph import Graph

FEW = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def graphs(draw, max_nodes=6):
    """Graphs with few labels, so that substructures repeat."""
    labels = draw(st.lists(st.sampled_from("CNO"), min_size=1, max_size=max_nodes))
    pairs = [(i, j) for i in range(len(labels)) for j in range(i)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Graph(labels, [(i, j, draw(st.sampled_from([1, 2]))) for i, j in chosen])


pairs_of_graphs = st.tuples(graphs(), graphs())


def neighbors(graph, nodes=None):
    """Return the neighbors of each node with the labels of the edges."""
    nodes = range(len(graph)) if nodes is None else nodes
    return {v: [(i + j - v, label) for i, j, label in graph.edges if v in (i, j) and i + j - v in nodes] for v in nodes}


def subtree(around, labels, v, depth, use_edges=True):
    """Return the Weisfeiler-Lehman label of a node as nested tuples, without hashes."""
    if depth == 0:
        return labels[v]
    below = [(label if use_edges else None, subtree(around, labels, u, depth - 1, use_edges)) for u, label in around[v]]
    return subtree(around, labels, v, depth - 1, use_edges), tuple(sorted(below, key=repr))


def subtrees(graph, depth, use_edges=True, nodes=None):
    """Count the Weisfeiler-Lehman labels of one depth among some nodes."""
    around = neighbors(graph, nodes)
    return Counter(subtree(around, graph.node_labels, v, depth, use_edges) for v in around)


def core(graph, k):
    """Return the nodes of the k-core, by removing one node after the other."""
    nodes = set(range(len(graph)))
    while bad := [v for v in nodes if len(neighbors(graph, nodes)[v]) < k]:
        nodes.remove(bad[0])
    return nodes


def paths(graph):
    """Count (label, distance, label) of ordered pairs of nodes by breadth-first search."""
    around, counts = neighbors(graph), Counter()
    for start in around:
        seen, front, length = {start}, {start}, 0
        while front := {u for v in front for u, _ in around[v]} - seen:
            length += 1
            seen |= front
            counts.update((graph.node_labels[start], length, graph.node_labels[v]) for v in front)
    return counts


def product(a, b):
    """Sum over all pairs of substructures of two graphs that are equal: a double loop."""
    return sum(n * m for x, n in a.items() for y, m in b.items() if x == y)
