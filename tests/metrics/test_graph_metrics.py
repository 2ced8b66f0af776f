"""The graph edit distance: equal to networkx, a metric, and honest about the time limit."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilearn.kernels.graph import Graph
from psilearn.metrics import BoundedMean, graph_edit_distance
from psilearn.metrics.graph_edits import edit_distance
from tests.kernels.graph.graph_cases import FEW, graphs

small_pairs = st.tuples(graphs(max_nodes=4), graphs(max_nodes=4))
RING = Graph("C" * 9, [(i, (i + 1) % 9) for i in range(9)])


def distance(first, second, edge_labels=True, seconds=10.0):
    return edit_distance(first, second, edge_labels=edge_labels, seconds=seconds)


@FEW
@given(small_pairs, st.booleans())
def test_the_distance_is_that_of_networkx(pair, edge_labels):
    networkx = pytest.importorskip("networkx")

    def same(a, b):
        return a["label"] == b["label"]

    expected = networkx.graph_edit_distance(
        *(graph.to_networkx() for graph in pair), node_match=same, edge_match=same if edge_labels else None
    )
    found = distance(*pair, edge_labels)
    assert (found.lower, found.upper) == (expected, expected)


@FEW
@given(graphs(), graphs(), st.randoms(use_true_random=False))
def test_isomorphic_graphs_have_the_same_distances(first, second, random):
    order = random.sample(range(len(first)), len(first))
    assert distance(first, first.relabeled(order)).upper == 0
    assert distance(first.relabeled(order), second) == distance(second, first)


@FEW
@given(graphs(max_nodes=5), st.data())
def test_one_edit_is_at_distance_one(graph, data):
    i = data.draw(st.integers(0, len(graph) - 1))
    labels = list(graph.node_labels)
    labels[i] = "other"
    assert distance(graph, Graph(labels, graph.edges)).upper == 1
    assert distance(graph, Graph([*graph.node_labels, "C"], graph.edges)).upper == 1
    if graph.edges:
        assert distance(graph, Graph(graph.node_labels, graph.edges[1:])).upper == 1
        (a, b, _), *others = graph.edges
        changed = Graph(graph.node_labels, [(a, b, "other"), *others])
        assert distance(graph, changed).upper == 1
        assert distance(graph, changed, edge_labels=False).upper == 0


def test_the_time_limit_gives_bounds_that_contain_the_distance(monkeypatch):
    monkeypatch.setattr("psilearn.metrics.graph_edits.CLOCK_STEPS", 1)
    path = Graph("C" * 9, [(0, 4), (4, 8), (1, 5), (5, 2), (2, 6), (6, 3), (3, 7), (7, 0), (0, 2)])
    exact, bounds = distance(RING, path), distance(RING, path, seconds=0.0)
    assert exact.is_exact
    assert not bounds.is_exact
    assert bounds.lower <= exact.upper <= bounds.upper
    mean = graph_edit_distance([RING, RING], [path, RING], time_limit=1e-9)
    assert mean.is_exact.tolist() == [False, True]
    assert "upper bounds: 1 of 2 values" in repr(mean)


def test_the_mean_keeps_its_bounds_in_a_pickle():
    mean = pickle.loads(pickle.dumps(BoundedMean([2.0, 3.0], [1.0, 3.0])))
    assert (float(mean), mean.lower.tolist(), repr(mean)) == (2.5, [1.0, 3.0], repr(BoundedMean([2, 3], [1, 3])))
    assert repr(BoundedMean([2.0, 3.0], [2.0, 3.0])) == "2.5000 ± 0.5000"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([RING], [RING, RING]), "Y_true has 1 outputs, Y_pred has 2"),
        (([RING], ["CCO"]), r"Y_pred\[0\] must be a Graph"),
        (([RING], [(np.eye(2), ["C", "C"])]), r"Y_pred\[0\]: edges must not be loops, as at node 0"),
    ],
)
def test_bad_graphs_raise_an_error(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        graph_edit_distance(*arguments)


def test_bad_parameters_raise_an_error():
    with pytest.raises(ValueError, match="time_limit must be"):
        graph_edit_distance([RING], [RING], time_limit=0)
    with pytest.raises(ValueError, match="values and lower must have"):
        BoundedMean([1.0], [2.0])
