"""Graphs: conversion from networkx and adjacency matrices, equality, and clear errors for bad ones."""

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from psilearn.kernels.graph import Graph, as_graphs
from tests.kernels.graph.graph_cases import FEW, graphs

MESSAGES = {
    "no nodes": (lambda: Graph([]), "at least one node"),
    "loop": (lambda: Graph("CC", [(1, 1)]), "edges must not be loops, as at node 1"),
    "repeated edge": (lambda: Graph("CC", [(0, 1), (1, 0, "x")]), "between nodes 0 and 1 occurs twice"),
    "unknown node": (lambda: Graph("CC", [(0, 2)]), "edges must join two of the 2 nodes"),
    "no edge": (lambda: Graph("CC", [3]), r"edges must be \(i, j\)"),
    "no edges": (lambda: Graph("CC", 3), r"edges must be a sequence of \(i, j\)"),
    "no dimensions": (lambda: as_graphs(np.array(3)), "got an array without dimensions"),
    "labels that are not hashable": (lambda: Graph([[1]]), "sequence of hashable labels"),
    "text": (lambda: as_graphs("CC"), "graphs must be a sequence of graphs; got str"),
    "other objects": (lambda: as_graphs([3], name="y"), r"y\[0\] must be a Graph, a networkx graph or a pair"),
    "asymmetric": (lambda: as_graphs([([[0, 1], [0, 0]], None)]), r"graphs\[0\]: the adjacency matrix must be"),
    "too few labels": (lambda: as_graphs([(np.zeros((2, 2)), ["C"])]), "1 labels do not fit"),
    "no order": (lambda: Graph("CC").relabeled(None), "order must be"),
    "order of other nodes": (lambda: Graph("CC").relabeled([0, 2.0]), "order must be"),
    "order": (lambda: Graph("CC").relabeled([0, 0]), "permutation of the 2 nodes"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_bad_graphs_raise_an_error(case):
    make, message = MESSAGES[case]
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@FEW
@given(graphs())
def test_conversions_return_the_same_graph(graph):
    pytest.importorskip("networkx")
    matrix = np.zeros((len(graph), len(graph)), int)
    for i, j, label in graph.edges:
        matrix[i, j] = matrix[j, i] = label
    pairs = [(matrix, list(graph.node_labels)), (sparse.csr_matrix(matrix), np.array(graph.node_labels))]
    assert as_graphs([graph, graph.to_networkx(), *pairs]) == [graph] * 4
    assert np.array_equal(graph.adjacency(), matrix > 0)
    assert len({graph, *as_graphs(pairs)}) == 1


def test_networkx_attributes_and_what_they_may_not_be():
    networkx = pytest.importorskip("networkx")
    path = networkx.path_graph(3)
    assert as_graphs([path])[0].node_labels == (None, None, None)
    networkx.set_node_attributes(path, {0: "C", 1: "N", 2: "O"}, "element")
    networkx.set_edge_attributes(path, 1, "order")
    graph = as_graphs([path], node_label="element", edge_label="order")[0]
    assert graph == Graph("CNO", [(0, 1, 1), (1, 2, 1)])
    path.add_node(3)
    with pytest.raises(ValueError, match="1 of 4 nodes have no attribute 'element'"):
        as_graphs([path], node_label="element")
    with pytest.raises(ValueError, match="only undirected graphs"):
        as_graphs([path.to_directed()])
    with pytest.raises(ValueError, match=r"graphs\[0\]: A graph must have at least one node"):
        as_graphs([networkx.Graph()])


def test_a_graph_is_immutable():
    graph = Graph("CC", [(1, 0)])
    with pytest.raises(AttributeError):
        graph.edges = ()
    assert (len(graph), repr(graph), repr(Graph("C"))) == (2, "Graph(2 nodes, 1 edge)", "Graph(1 node, 0 edges)")
