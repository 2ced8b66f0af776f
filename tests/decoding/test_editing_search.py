"""Local search: brute force if all outputs are edits, a local optimum otherwise; edits reach all graphs."""

from itertools import combinations, product

import numpy as np
import pytest

from psilearn import IOKR
from psilearn.decoding import GraphEdits, local_search
from psilearn.kernels import Gaussian, Graph, Hellinger, HierarchicalDice, Hierarchy, Linear, WeisfeilerLehman
from psilearn.metrics.graph_edits import edit_distance

EDITS = GraphEdits("CO", [1, 2], max_nodes=3)


def all_graphs():
    """Return all connected graphs of up to three nodes with two labels of nodes and of edges."""
    found = []
    for n in (1, 2, 3):
        pairs = list(combinations(range(n), 2))
        for labels, orders in product(product("CO", repeat=n), product((0, 1, 2), repeat=len(pairs))):
            edges = [(*pair, order) for pair, order in zip(pairs, orders, strict=True) if order]
            if len(edges) >= n - 1:
                found.append(Graph(labels, edges))
    return found


UNIVERSE = all_graphs()
RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 3))
KNOWN = [UNIVERSE[i] for i in RNG.choice(len(UNIVERSE), 12, replace=False)]
STARTS = [Graph("C"), Graph("OOO", [(0, 1, 2), (1, 2, 2), (0, 2, 2)])]
KERNELS = [
    WeisfeilerLehman(2, n_features=64),
    WeisfeilerLehman(1, normalize=False, base=Linear()),
    WeisfeilerLehman(1, base=Gaussian(0.5)),
    WeisfeilerLehman(1) + Gaussian(0.2, WeisfeilerLehman(0)),
]


def fitted(kernel):
    model = IOKR(Gaussian(0.5), kernel, alpha=1e-4).fit(X, KNOWN)
    return model, model.embed(X + 0.3)


def distances(model, Z, outputs):
    """Return |G*z − ψ(y)|² by kernel values with the landmarks."""
    kernel, embedding = model.output_kernel_, model.embedding_
    products = Z @ embedding.basis.T @ kernel(embedding.landmarks, outputs)
    return (Z**2).sum(axis=1)[:, None] - 2 * products + kernel.diag(outputs)


@pytest.mark.parametrize("kernel", KERNELS, ids=["linear", "linear base", "gaussian base", "sum"])
def test_if_all_outputs_are_edits_the_search_is_brute_force(kernel):
    model, Z = fitted(kernel)
    found = local_search(Z, model.candidates_, lambda graph: UNIVERSE, n_starts=1)
    np.testing.assert_allclose(found.distances, distances(model, Z, UNIVERSE).min(axis=1), atol=1e-10)
    assert found.is_optimal.all()
    assert set(found.n_steps) <= {0, 1}


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[2]], ids=["linear", "gaussian base"])
def test_no_edit_of_the_result_is_nearer_and_it_is_not_farther_than_the_start(kernel):
    model, Z = fitted(kernel)
    starts = model.candidate_set(STARTS)
    found = local_search(Z, starts, EDITS, n_starts=2)
    nearest = starts.nearest(Z, 1)
    assert found.start_outputs == nearest.nearest
    np.testing.assert_allclose(found.start_distances, nearest.distances[:, 0])
    assert (found.distances <= found.start_distances + 1e-10).all()
    assert (found.distances < found.start_distances - 1e-6).any()
    assert found.is_optimal.all()
    for i, output in enumerate(found.outputs):
        values = distances(model, Z[i : i + 1], [output, *EDITS(output)])[0]
        assert values[0] == pytest.approx(found.distances[i])
        assert values.min() >= values[0] - 1e-8


def flip_one(row):
    """Return the label sets that differ from one by one label."""
    return [np.where(np.arange(len(row)) == j, 1 - row, row) for j in range(len(row))]


@pytest.mark.parametrize("kernel", [HierarchicalDice(Hierarchy([-1, 0, 0, 1])), Hellinger()])
def test_kernels_with_dense_features_or_their_own_base(kernel):
    outputs = np.array(list(product([0, 1], repeat=4)))[1:]
    model = IOKR(Gaussian(0.5), kernel, alpha=0.1).fit(X, outputs[:12])
    Z = model.embed(X + 0.2)
    found = local_search(Z, model.candidates_, flip_one if isinstance(kernel, HierarchicalDice) else lambda _: [])
    kept = model.candidate_set(np.array(found.outputs)).nearest(Z, len(Z))
    np.testing.assert_allclose(
        [row[own == i][0] for i, (row, own) in enumerate(zip(kept.distances, kept.indices, strict=True))],
        found.distances,
        atol=1e-10,
    )
    np.testing.assert_array_less(found.distances, found.start_distances + 1e-10)


def test_blocks_and_the_number_of_steps(monkeypatch):
    model, Z = fitted(KERNELS[0])
    starts = model.candidate_set(STARTS)
    whole = local_search(Z, starts, EDITS, n_starts=2)
    monkeypatch.setattr("psilearn.decoding.editing_search.BLOCK_QUERIES", 5)
    parts = local_search(Z, starts, EDITS, n_starts=2)
    assert parts.outputs == whole.outputs
    assert local_search(Z[:7], starts, EDITS, n_starts=2, n_jobs=2).outputs == whole.outputs[:7]
    short = local_search(Z, starts, EDITS, n_starts=2, max_steps=1)
    assert short.n_steps.max() == 1
    assert not short.is_optimal[whole.n_steps > 1].any()
    assert local_search(Z[:0], starts, EDITS).outputs == []
    without = local_search(Z, model.candidates_, lambda graph: [])
    assert without.outputs == without.start_outputs


def test_edits_reach_all_connected_graphs_and_return_no_others():
    found, front = {UNIVERSE[0]}, [UNIVERSE[0]]
    while front:
        front = list({graph for item in front for graph in EDITS(item)} - found)
        found.update(front)
    assert found == set(UNIVERSE)


def test_all_graphs_at_edit_distance_one_are_edits():
    start = Graph("COC", [(0, 1, 1), (1, 2, 2)])
    near = {
        graph
        for graph in UNIVERSE
        if len(graph) == 3 and edit_distance(start, graph, edge_labels=True, seconds=9).upper == 1
    }
    rows = {tuple(KERNELS[0].features([graph]).toarray()[0].round(9)) for graph in near}
    reached = {tuple(KERNELS[0].features([graph]).toarray()[0].round(9)) for graph in EDITS(start)}
    assert rows <= reached


def test_graphs_need_not_be_connected():
    pair = Graph("CO", [(0, 1, 1)])
    assert Graph("CO") in GraphEdits("CO", [1], connected=False)(pair)
    assert Graph("CO") not in GraphEdits("CO", [1])(pair)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": KNOWN}, "candidates must be Candidates, such as model.candidates_; got list"),
        ({"edits": 3}, "edits must be a function"),
        ({"edits": lambda graph: None}, "edits must return a list of outputs; got NoneType"),
        ({"n_starts": 0}, "n_starts"),
        ({"max_steps": 0}, "max_steps"),
        ({"Z": np.zeros((2, 99))}, "Z must have shape"),
    ],
)
def test_bad_arguments_raise_an_error(change, message):
    model, Z = fitted(KERNELS[0])
    arguments = {"Z": Z, "candidates": model.candidates_, "edits": EDITS, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        local_search(**arguments)
