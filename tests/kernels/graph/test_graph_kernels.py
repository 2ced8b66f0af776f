"""Kernels on graphs: equal to a double loop over substructures and to GraKeL, and the same for isomorphic graphs."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from psilearn.kernels import EdgeHistogram, GraKeLKernel, Graph, ShortestPaths, VertexHistogram, WeisfeilerLehman
from psilearn.kernels.graph import graph_kernels
from tests.kernels.graph.graph_cases import FEW, core, graphs, pairs_of_graphs, paths, product, subtrees

WIDE = 2**31 - 1  # so many columns that no two substructures share one
TRIANGLE = Graph("CNC", [(0, 1), (1, 2), (0, 2)])
ALL_KERNELS = [
    WeisfeilerLehman(2, normalize=False),
    WeisfeilerLehman(2, cores=True, normalize_depths=True),
    WeisfeilerLehman(2, edge_labels=False),
    VertexHistogram(),
    EdgeHistogram(normalize=False),
    EdgeHistogram(ends=False),
    ShortestPaths(normalize=False),
]


def inner(kernel, a, b):
    rows = kernel.features([a, b])  # a product of CSR rows would need an array as long as a row
    return rows[0].multiply(rows[1]).sum()


@FEW
@given(pairs_of_graphs, st.integers(0, 3), st.booleans())
@example((TRIANGLE, TRIANGLE), 1, False)  # both kinds of nodes have the same labels around and including them
def test_wl_is_a_double_loop_over_subtrees(pair, depth, use_edges):
    expected = sum(product(*(subtrees(graph, t, use_edges) for graph in pair)) for t in range(depth + 1))
    assert inner(WeisfeilerLehman(depth, edge_labels=use_edges, n_features=WIDE, normalize=False), *pair) == expected


@FEW
@given(pairs_of_graphs)
def test_cores_add_the_subtrees_of_each_core(pair):
    expected = sum(
        product(*(subtrees(graph, t, nodes=core(graph, k)) for graph in pair)) for t in range(3) for k in range(6)
    )
    assert inner(WeisfeilerLehman(2, cores=True, n_features=WIDE, normalize=False), *pair) == expected


@FEW
@given(pairs_of_graphs)
def test_normalized_depths_have_equal_weights(pair):
    cosines = []
    for t in range(3):
        a, b = (subtrees(graph, t) for graph in pair)
        cosines.append(product(a, b) / np.sqrt(product(a, a) * product(b, b)))
    assert inner(WeisfeilerLehman(2, normalize_depths=True, n_features=WIDE), *pair) == pytest.approx(np.mean(cosines))


@FEW
@given(pairs_of_graphs)
def test_histograms_and_paths_are_double_loops(pair):
    def ends(graph):
        labels = graph.node_labels
        return Counter((label, *sorted((labels[i], labels[j]))) for i, j, label in graph.edges)

    expected = {
        VertexHistogram: product(*(Counter(graph.node_labels) for graph in pair)),
        EdgeHistogram: product(*map(ends, pair)),
        ShortestPaths: product(*map(paths, pair)),
    }
    assert {cls: inner(cls(n_features=WIDE, normalize=False), *pair) for cls in expected} == expected


@FEW
@given(graphs(), st.randoms(use_true_random=False))
def test_isomorphic_graphs_have_equal_rows(graph, random):
    order = random.sample(range(len(graph)), len(graph))
    for kernel in ALL_KERNELS:
        rows = kernel.features([graph, graph.relabeled(order)])
        np.testing.assert_allclose((rows[0] - rows[1]).data, 0, atol=1e-15)


@FEW
@given(st.lists(graphs(), min_size=2, max_size=6))
def test_rows_do_not_depend_on_the_other_graphs_and_kernels_are_psd(batch):
    for kernel in ALL_KERNELS:
        rows = kernel.features(batch)
        assert sparse.issparse(rows)
        alone = sparse.vstack([kernel.features([graph]) for graph in batch], "csr")
        assert abs(rows - alone).sum() < 1e-14
        assert np.linalg.eigvalsh((rows @ rows.T).toarray()).min() > -1e-12


def test_columns_are_taken_modulo_the_width():
    graph = Graph("CCNO", [(0, 1), (1, 2), (2, 3)])
    wide, narrow = (
        WeisfeilerLehman(2, n_features=width, normalize=False).features([graph]).tocoo() for width in (2**18, 2**4)
    )
    expected = np.zeros(2**4)
    np.add.at(expected, wide.col % 2**4, wide.data)
    np.testing.assert_array_equal(narrow.toarray()[0], expected)


def test_many_graphs_are_computed_in_parts(monkeypatch):
    batch = [Graph("C" * size, [(i, i + 1) for i in range(size - 1)]) for size in range(1, 8)]
    expected = WeisfeilerLehman().features(batch)
    monkeypatch.setattr("psilearn.kernels.graph.graph_kernels.MAX_GRAPHS", 3)
    assert abs(WeisfeilerLehman().features(batch) - expected).sum() == 0


def test_features_are_the_same_in_all_processes_and_versions():
    rows = WeisfeilerLehman(1).features([Graph(["C", 1, None], [(0, 1, "double"), (1, 2)])])
    assert rows.indices.tolist() == [9967, 15475, 127881, 135718, 152537, 253991]


def test_longer_paths_can_be_left_out():
    chain = Graph("CCC", [(0, 1), (1, 2)])
    assert ShortestPaths(normalize=False).features([chain]).sum() == 6
    assert ShortestPaths(max_length=1, normalize=False).features([chain]).sum() == 4


def test_shortest_paths_are_computed_in_working_memory(monkeypatch):
    graphs = [Graph("C" * n, [(i, i + 1) for i in range(n - 1)]) for n in (5, 20, 20, 7, 20)]
    expected = ShortestPaths().features(graphs)
    n_computed = []
    original = graph_kernels._path_lengths
    monkeypatch.setattr(
        graph_kernels, "_path_lengths", lambda *arguments: n_computed.append(len(arguments[1])) or original(*arguments)
    )
    monkeypatch.setattr(graph_kernels, "PATH_BYTES", 10**9)  # more than the working memory
    assert (ShortestPaths().features(graphs) != expected).nnz == 0 and n_computed == [1] * 5


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (WeisfeilerLehman(-1), "depth must be an integer ≥ 0; got -1"),
        (WeisfeilerLehman(normalize_depths="rows"), "normalize_depths must be"),
        (VertexHistogram(n_features=2**31), "n_features must be at most 2147483647"),
        (ShortestPaths(max_length=0), "max_length"),
        (EdgeHistogram(ends="both"), "ends"),
    ],
)
def test_wrong_parameters_raise_an_error(kernel, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel.features([Graph("C")])


def test_labels_must_have_contents():
    with pytest.raises(TypeError, match="Labels of graphs must be texts, numbers, None or tuples"):
        VertexHistogram().features([Graph([object()])])


class TestGraKeL:
    """The same kernels in GraKeL, which has no labels of edges in these."""

    batch = (
        Graph("CCO", [(0, 1), (1, 2)]),
        Graph("CCCCCN", [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (4, 5)]),
        TRIANGLE,
        Graph("CONF", [(0, 1), (0, 2), (0, 3)]),
    )

    def items(self, grakel):
        return [
            grakel.Graph(
                {(i, j): 1 for a, b, _ in graph.edges for i, j in ((a, b), (b, a))}, dict(enumerate(graph.node_labels))
            )
            for graph in self.batch
        ]

    @pytest.mark.parametrize(
        ("name", "parameters", "kernel"),
        [
            ("WeisfeilerLehman", {"n_iter": 3}, WeisfeilerLehman(3, edge_labels=False, normalize=False)),
            ("ShortestPath", {}, ShortestPaths(normalize=False)),
            ("VertexHistogram", {}, VertexHistogram(normalize=False)),
            ("WeisfeilerLehman", {"n_iter": 3, "normalize": True}, WeisfeilerLehman(3, edge_labels=False)),
        ],
    )
    def test_kernel(self, name, parameters, kernel):
        grakel = pytest.importorskip("grakel")
        np.testing.assert_allclose(
            getattr(grakel, name)(**parameters).fit_transform(self.items(grakel)), kernel(self.batch)
        )

    def test_core_framework(self):
        grakel = pytest.importorskip("grakel")
        base = (grakel.WeisfeilerLehman, {"n_iter": 2})
        kernel = WeisfeilerLehman(2, edge_labels=False, cores=True, normalize=False)
        np.testing.assert_allclose(
            grakel.CoreFramework(base_graph_kernel=base).fit_transform(self.items(grakel)), kernel(self.batch)
        )

    def test_adapter(self):
        grakel = pytest.importorskip("grakel")
        kernel = GraKeLKernel(grakel.ShortestPath())
        expected = ShortestPaths(normalize=False)(self.batch)
        np.testing.assert_allclose(kernel.gram(self.batch), expected)
        np.testing.assert_allclose(kernel(self.batch[:2], self.batch[1:]), expected[:2, 1:])
        with pytest.raises(TypeError, match="must be a kernel of GraKeL; got 3"):
            GraKeLKernel(3)(self.batch)
