"""The Fused Gromov–Wasserstein distance: closed forms at both ends of the trade-off, and bounds in between."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("ot", reason="optimal transport needs the extra psilearn[graph]")

from psilearn.kernels import Graph
from psilearn.metrics import fgw_distance
from tests.kernels.graph.graph_cases import pairs_of_graphs

FEW = settings(max_examples=10, deadline=None, derandomize=True)


def cost(first, second, coupling, weight):
    """Return the cost of a coupling, by a loop over pairs of pairs of nodes."""
    pairs = list(itertools.product(range(len(first)), range(len(second))))
    labels = sum(coupling[i, j] * (first.node_labels[i] != second.node_labels[j]) for i, j in pairs)
    A, B = first.adjacency().astype(float), second.adjacency().astype(float)
    edges = sum(coupling[i, j] * coupling[k, m] * (A[i, k] - B[j, m]) ** 2 for i, j in pairs for k, m in pairs)
    return (1 - weight) * labels + weight * edges


@FEW
@given(pairs_of_graphs)
def test_without_edges_it_is_the_distance_of_the_shares_of_labels(pair):
    shares = [{label: graph.node_labels.count(label) / len(graph) for label in "CNO"} for graph in pair]
    expected = 1 - sum(min(share[label] for share in shares) for label in "CNO")
    assert fgw_distance([pair[0]], [pair[1]], trade_off=0.0) == pytest.approx(expected, abs=1e-9)


@FEW
@given(pairs_of_graphs)
def test_it_is_at_most_the_cost_of_the_uniform_coupling(pair):
    first, second = pair
    uniform = np.full((len(first), len(second)), 1 / (len(first) * len(second)))
    value = fgw_distance([first], [second], trade_off=0.4)
    assert -1e-12 <= value <= cost(first, second, uniform, 0.4) + 1e-9


def test_one_changed_label_costs_one_node():
    ring = Graph("CCCO", [(0, 1), (1, 2), (2, 3), (3, 0)])
    changed = Graph("CCCN", ring.edges)
    mean = fgw_distance([ring, ring], [ring, changed], trade_off=0.5)
    np.testing.assert_allclose(mean.values, [0, 0.125], atol=1e-9)


def test_bad_arguments_raise_an_error():
    with pytest.raises(ValueError, match="trade_off"):
        fgw_distance([Graph("C")], [Graph("C")], trade_off=2)
    with pytest.raises(TypeError, match=r"Y_pred\[0\] must be a Graph"):
        fgw_distance([Graph("C")], ["C"])
