"""Hierarchies of labels: ancestors by walking up, forms of label sets, and errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from psilearn.kernels import Hierarchy


@st.composite
def acyclic_graphs(draw):
    """Draw the parents of up to 8 labels, in an order in which parents may come after children."""
    n = draw(st.integers(1, 8))
    parents = [draw(st.lists(st.integers(0, j - 1), max_size=3, unique=True)) if j else [] for j in range(n)]
    order = draw(st.permutations(range(n)))
    renamed = [[] for _ in range(n)]
    for j, numbers in enumerate(parents):
        renamed[order[j]] = [order[i] for i in numbers]
    return renamed


def walk_up(parents, label):
    return {label}.union(*(walk_up(parents, parent) for parent in parents[label]))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(parents=acyclic_graphs(), data=st.data())
def test_closing_a_set_adds_all_ancestors(parents, data):
    hierarchy, n = Hierarchy(parents), len(parents)
    chosen = data.draw(st.sets(st.integers(0, n - 1)))
    row = np.isin(np.arange(n), list(chosen)).astype(int)[None]
    expected = set().union(*(walk_up(parents, label) for label in chosen))
    closed = hierarchy.close(row)
    assert set(np.flatnonzero(closed[0])) == expected
    assert hierarchy.is_consistent(row)[0] == (chosen == expected)
    assert np.array_equal(hierarchy.close(sparse.csr_matrix(row)).toarray(), closed)
    assert hierarchy.is_consistent(sparse.csr_matrix(closed)).all()
    assert hierarchy.is_tree == all(len(numbers) < 2 for numbers in parents)


def test_forms_are_kept():
    hierarchy = Hierarchy([-1, 0])
    for dtype in (bool, np.uint8, np.float32):
        assert hierarchy.close(np.array([[0, 1]], dtype)).dtype == dtype
        assert hierarchy.close(sparse.csr_array(np.array([[0, 1]], dtype))).dtype == dtype
    torch = pytest.importorskip("torch")
    assert hierarchy.close(torch.tensor([[0, 1]])).tolist() == [[1, 1]]


def test_names():
    hierarchy = Hierarchy.from_edges([("b", "c"), ("b", "c")], names=["a", "b", "c"])
    assert hierarchy.parents == ((), (), (1,))
    rows = hierarchy.encode([["c"], "a", []])
    assert rows.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert hierarchy.decode(rows) == [["b", "c"], ["a"], []]
    assert Hierarchy([-1, 0]).decode([[0, 1]]) == [["1"]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hierarchy([1, 2, 0]), "parents has a cycle: 0 → 1 → 2 → 0"),
        (lambda: Hierarchy([-1, 1]), "parents has a cycle: 1 → 1"),
        (lambda: Hierarchy.from_edges([("a", "b"), ("b", "a")]), "parents has a cycle: a → b → a"),
        (lambda: Hierarchy([-1, 2]), r"parents\[1\] contains 2, which is not one of the 2 labels"),
        (lambda: Hierarchy([-1, "0"]), r"parents\[1\] must be the number of a label"),
        (lambda: Hierarchy([]), "parents must be a sequence"),
        (lambda: Hierarchy([-1], names=["a", "b"]), "names has 2 names, but parents has 1 labels"),
        (lambda: Hierarchy([-1, 0], names=["a", "a"]), "names must be a sequence of distinct texts"),
        (lambda: Hierarchy.from_edges([("a", "b", "c")]), r"edges\[0\] must be the names of a parent"),
        (lambda: Hierarchy.from_edges([("a", "b")], names=["a"]), r"edges\[0\] contains 'b', which is not in names"),
        (lambda: Hierarchy([-1], names=["a"]).encode([["a"], ["b"]]), r"sets\[1\] contains 'b', which is not a label"),
        (lambda: Hierarchy([-1, 0]).close([[1, 0, 0]]), r"Y must have shape \(n, 2\)"),
    ],
)
def test_bad_hierarchies_are_named(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize("wrong", [None, 3, np.array(0), [3], [None], [["b", 3]], [[["b"]]]])
def test_wrong_names_and_edges_are_named(wrong):
    with pytest.raises((TypeError, ValueError), match="sets"):
        Hierarchy([-1, 0], ["a", "b"]).encode(wrong)
    with pytest.raises((TypeError, ValueError), match="edges"):
        Hierarchy.from_edges(wrong)


def test_no_sets_and_no_edges():
    assert Hierarchy([-1, 0], ["a", "b"]).encode([]).shape == (0, 2)
    with pytest.raises(ValueError, match="edges is empty"):
        Hierarchy.from_edges([])
