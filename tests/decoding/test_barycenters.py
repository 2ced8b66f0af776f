"""Barycenters of graphs: a single landmark is its own barycenter, and weights decide between several."""

import numpy as np
import pytest

pytest.importorskip("ot", reason="optimal transport needs the extra psilearn[graph]")

from psilearn import IOKR
from psilearn.decoding import fgw_barycenters
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Graph, Linear, WeisfeilerLehman
from psilearn.metrics.graph_edits import edit_distance

CHAIN = Graph("CCON", [(0, 1, 2), (1, 2, 2), (2, 3, 2)])
STAR = Graph("OFFF", [(0, 1, 1), (0, 2, 1), (0, 3, 1)])
SMALL = Graph("C")


def embedding(*graphs):
    return Embedding(WeisfeilerLehman(1), list(graphs), np.eye(len(graphs)))


def edits(first, second):
    return edit_distance(first, second, edge_labels=True, seconds=9).upper


@pytest.mark.parametrize("graph", [CHAIN, STAR, SMALL])
def test_the_barycenter_of_one_graph_is_this_graph(graph):
    both = embedding(graph, CHAIN)
    assert edits(fgw_barycenters(np.array([[1.0, -0.5]]), both)[0], graph) == 0
    assert edits(fgw_barycenters(np.array([[1.0, 0.2]]), both, n_graphs=1)[0], graph) == 0
    assert edits(fgw_barycenters(np.array([[0.5, 0.5]]), embedding(graph, graph))[0], graph) == 0


def test_large_weights_decide_and_negative_predictions_give_the_nearest():
    found = fgw_barycenters(np.array([[0.95, 0.05], [0.05, 0.95], [-1.0, -2.0]]), embedding(CHAIN, STAR))
    assert [edits(graph, other) for graph, other in zip(found, [CHAIN, STAR, CHAIN], strict=True)] == [0, 0, 0]


def test_the_number_of_nodes_is_the_weighted_mean_or_given():
    both = embedding(CHAIN, Graph("CC", [(0, 1, 1)]))
    weights = np.array([[0.5, 0.5]])
    assert len(fgw_barycenters(weights, both)[0]) == 3
    assert len(fgw_barycenters(weights, both, n_nodes=5)[0]) == 5


def test_bad_arguments_raise_an_error():
    model = IOKR(Gaussian(1.0), Linear()).fit([[0.0], [1.0]], [[0.0], [1.0]])
    with pytest.raises(TypeError, match=r"embedding must be an Embedding, such as model\.embedding_; got list"):
        fgw_barycenters(np.zeros((1, 2)), [[0.0]])
    with pytest.raises(TypeError, match="embedding must be that of a model whose outputs are graphs"):
        fgw_barycenters(model.embed([[0.0]]), model.embedding_)
    with pytest.raises(ValueError, match="n_nodes must be at most 1000; got 5000"):
        fgw_barycenters(np.ones((1, 1)), embedding(CHAIN), n_nodes=5000)
    with pytest.raises(ValueError, match=r"Z must have shape \(q, 1\)"):
        fgw_barycenters(np.ones((1, 2)), embedding(CHAIN))
    with pytest.raises(ValueError, match="n_graphs"):
        fgw_barycenters(np.ones((1, 1)), embedding(CHAIN), n_graphs=0)
