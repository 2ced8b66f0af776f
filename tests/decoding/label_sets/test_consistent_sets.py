"""All consistent label sets of a hierarchy: the tree's dynamic programming equals enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, OELCV
from psilearn.decoding import ConsistentLabelSets, SharedCandidates
from psilearn.decoding.label_sets.consistent_sets import Preorder
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Gaussian, HierarchicalDice, Hierarchy, Linear, Normalized, Tanimoto

KERNELS = {
    "hierarchical": HierarchicalDice,
    "dice": lambda _: Dice(),
    "linear": lambda _: Linear(),
    "cosine": lambda _: Normalized(Linear()),
    "sum": lambda _: 0.5 * Dice() + Linear(),
}


def random_forest(n_labels, rng):
    """Return a forest with random parents in a random order of the labels."""
    order = rng.permutation(n_labels)
    parents = np.full(n_labels, -1)
    for j in range(1, n_labels):
        parents[order[j]] = order[rng.integers(0, j)] if rng.random() < 0.8 else -1
    return Hierarchy(parents.tolist())


def enumerate_sets(hierarchy):
    """Return all consistent sets as rows, by trying all 2^L sets."""
    rows = np.array(list(product([0, 1], repeat=hierarchy.n_labels)))
    return rows[hierarchy.is_consistent(rows)]


def random_embedding(kernel, hierarchy, rng, n_landmarks=9, p=5):
    landmarks = (rng.random((n_landmarks, hierarchy.n_labels)) < 0.25).astype(float)
    K = kernel.gram(landmarks)
    values, vectors = np.linalg.eigh(K)
    top = vectors[:, -p:] / np.sqrt(values[-p:])  # GG* = I
    return Embedding(kernel, landmarks, top)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KERNELS)
def test_dynamic_programming_equals_enumeration_for_12_labels(name, seed):
    rng = np.random.default_rng(seed)
    hierarchy = random_forest(12, rng)
    embedding = random_embedding(KERNELS[name](hierarchy), hierarchy, rng)
    listed = SharedCandidates(enumerate_sets(hierarchy).astype(float), embedding)
    sets = ConsistentLabelSets(embedding, hierarchy=hierarchy)
    Z = rng.standard_normal((30, 5)) * rng.uniform(0.1, 2, (30, 1))
    found, expected = sets.nearest(Z, 1), listed.nearest(Z, 1)
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-10)
    assert hierarchy.is_consistent(found.nearest).all()
    attained = SharedCandidates(found.nearest, embedding).nearest(Z, 30)
    own = [attained.distances[i][attained.indices[i] == i][0] for i in range(30)]
    np.testing.assert_allclose(own, expected.distances[:, 0], atol=1e-9)
    assert sets.max_size == listed.max_size


def test_limits_of_sizes():
    rng = np.random.default_rng(5)
    hierarchy = random_forest(9, rng)
    embedding = random_embedding(HierarchicalDice(hierarchy), hierarchy, rng)
    rows = enumerate_sets(hierarchy).astype(float)
    sizes = rows.sum(axis=1)
    sets = ConsistentLabelSets(embedding, hierarchy=hierarchy, min_labels=2, max_labels=4)
    allowed = rows[(sizes >= 2) & (sizes <= 4)]
    Z = rng.standard_normal((20, 5))
    expected = SharedCandidates(allowed, embedding).nearest(Z, 3)
    assert sets.max_size == len(allowed)
    np.testing.assert_allclose(sets.nearest(Z, 1).distances, expected.distances[:, :1], atol=1e-10)
    np.testing.assert_allclose(sets.nearest(Z, 3).distances, expected.distances, atol=1e-10)


def test_totals_of_a_path_and_of_a_star():
    path, star = (Preorder.of(Hierarchy(parents)) for parents in ([-1, 0, 1], [2, 2, -1]))
    w = np.array([1.0, -5.0, 7.0])
    assert path.best_sums(w, 3).tolist() == [0, 1, -4, 3]
    assert star.best_sums(w, 3).tolist() == [0, 7, 8, 3]
    assert star.best_sets(w[None], np.array([2])).tolist() == [[True, False, True]]
    assert star.count_sets(0, 3, 100) == 5
    assert star.count_sets(0, 3, 4) == 4


@pytest.mark.parametrize("limits", [(0, 6), (2, 4), (4, 6), (6, 6), (3, 3)])
def test_sets_of_allowed_sizes_are_listed_in_a_graph_with_several_parents(limits):
    hierarchy = Hierarchy([[], [0], [], [0, 2], [3, 1], []])
    known = np.ones((1, 6))
    embedding = Embedding(HierarchicalDice(hierarchy), known, np.eye(1))
    sets = ConsistentLabelSets(embedding, known, min_labels=limits[0], max_labels=limits[1])
    rows = enumerate_sets(hierarchy)
    expected = rows[(rows.sum(axis=1) >= limits[0]) & (rows.sum(axis=1) <= limits[1])]
    assert sorted(map(tuple, sets.listed.outputs.tolist())) == sorted(map(tuple, expected.tolist()))


def test_few_large_sets_are_listed_without_trying_all_small_ones():
    n_labels = 60
    hierarchy = Hierarchy([[] for _ in range(n_labels - 1)] + [[0, 1]])
    known = np.ones((1, n_labels))
    embedding = Embedding(HierarchicalDice(hierarchy), known, np.eye(1))
    sets = ConsistentLabelSets(embedding, known, min_labels=n_labels - 1)
    assert sets.max_size == n_labels - 1  # all labels, or all but one that is not a parent


def test_a_label_with_two_parents_is_decoded_by_listing_or_refused():
    rng = np.random.default_rng(0)
    diamond = Hierarchy([[], [0], [0], [1, 2]])
    embedding = random_embedding(HierarchicalDice(diamond), diamond, rng)
    Z = rng.standard_normal((5, 5))
    expected = SharedCandidates(enumerate_sets(diamond).astype(float), embedding).nearest(Z, 2)
    found = ConsistentLabelSets(embedding).nearest(Z, 2)
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-12)
    wide = Hierarchy([[], [], [0, 1], *[[]] * 30])
    known = (rng.random((9, 33)) < 0.3).astype(float)
    model = IOKR(Gaussian(1.0), HierarchicalDice(wide)).fit(rng.standard_normal((9, 2)), known)
    with pytest.raises(ValueError, match="in a tree only, but label 2 has several parents"):
        model.predict(rng.standard_normal((2, 2)), candidates="all")


def problem(rng, n=60):
    """Return inputs with consistent sets of a tree of 7 labels that depend on them."""
    hierarchy = Hierarchy([-1, 0, 0, 1, 1, 2, 2])
    X = rng.standard_normal((n, 2))
    leaves = 3 + 2 * (X[:, 0] > 0) + (X[:, 1] > 0)
    return X, hierarchy.close(np.eye(7, dtype=int)[leaves]), hierarchy


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_models_predict_over_all_consistent_sets(form):
    X, Y, hierarchy = problem(np.random.default_rng(0))
    model = IOKR(Gaussian(1.0), HierarchicalDice(hierarchy), alpha=1e-3).fit(X, form(Y))
    predicted = model.predict(X, candidates="all")
    assert type(predicted) is type(form(Y))
    assert hierarchy.is_consistent(predicted).all()
    assert (predicted != form(Y)).mean() < 0.05
    with pytest.raises(ValueError, match="not the hierarchy of the output kernel"):
        model.predict(X, candidates=ConsistentLabelSets(hierarchy=Hierarchy([-1] * 7)))


def test_a_search_scores_all_consistent_sets():
    X, Y, hierarchy = problem(np.random.default_rng(1), 40)
    search = OELCV(
        [Gaussian(1.0)],
        [HierarchicalDice(hierarchy)],
        alphas=[1e-4, 1e-2, 1.0],
        n_components=[3],
        supervisions=[0.5],
        scoring="hierarchical_f1",
        candidates="all",
        cv=2,
    )
    assert search.fit(X, Y).best_score_ > 0.8


@pytest.mark.parametrize(
    ("kernel", "sets", "message"),
    [
        (Dice(), ConsistentLabelSets(), "needs hierarchy"),
        (Dice(), ConsistentLabelSets(hierarchy=Hierarchy([-1, 0])), "hierarchy has 2 labels, but the outputs"),
        (Tanimoto(), ConsistentLabelSets(hierarchy=Hierarchy([-1] * 20)), "not with Tanimoto"),
        (Dice(), ConsistentLabelSets(hierarchy=Hierarchy([-1] * 20), min_labels=21), "No label set is allowed"),
    ],
)
def test_bad_arguments_are_named(kernel, sets, message):
    rng = np.random.default_rng(0)
    model = IOKR(Gaussian(1.0), kernel).fit(rng.standard_normal((9, 2)), (rng.random((9, 20)) < 0.3).astype(int))
    with pytest.raises((TypeError, ValueError), match=message):
        model.predict(rng.standard_normal((1, 2)), candidates=sets)


def test_bounds_leave_out_no_better_size():
    rng = np.random.default_rng(7)
    hierarchy = random_forest(60, rng)
    embedding = random_embedding(HierarchicalDice(hierarchy), hierarchy, rng, n_landmarks=20, p=8)
    sets = ConsistentLabelSets(embedding)
    Z = rng.standard_normal((20, 8)) * rng.uniform(0.1, 2, (20, 1))
    one_by_one = [ConsistentLabelSets(embedding, min_labels=size, max_labels=size) for size in range(61)]
    expected = np.min([alone.nearest(Z, 1).distances for alone in one_by_one], axis=0)
    np.testing.assert_allclose(sets.nearest(Z, 1).distances, expected, atol=1e-10)
