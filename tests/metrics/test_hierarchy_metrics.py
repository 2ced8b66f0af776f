"""Hierarchical precision, recall and F1 against loops over sets with ancestors."""

import numpy as np
import pytest
from scipy import sparse

from psilearn.kernels import Dice, HierarchicalDice, Hierarchy
from psilearn.metrics import hierarchical_f1, hierarchical_precision, hierarchical_recall
from psilearn.model_selection.scoring import as_scoring

HIERARCHY = Hierarchy([-1, 0, 0, [1, 2], 2, -1])
RNG = np.random.default_rng(0)
TRUE, PREDICTED = ((RNG.random((40, 6)) < 0.25).astype(int) for _ in range(2))


def closed_set(row):
    return set(np.flatnonzero(HIERARCHY.close(row[None])[0]))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, lambda rows: rows.tolist()])
def test_means_over_sets_with_ancestors(form):
    pairs = [(closed_set(a), closed_set(b)) for a, b in zip(TRUE, PREDICTED, strict=True)]
    precision = [len(a & b) / len(b) if b else 1.0 for a, b in pairs]
    recall = [len(a & b) / len(a) if a else 1.0 for a, b in pairs]
    f1 = [2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0 for a, b in pairs]
    arguments = form(TRUE), form(PREDICTED), HIERARCHY
    np.testing.assert_allclose(hierarchical_precision(*arguments).values, precision)
    np.testing.assert_allclose(hierarchical_recall(*arguments).values, recall)
    np.testing.assert_allclose(hierarchical_f1(*arguments).values, f1)
    np.testing.assert_allclose(HierarchicalDice(HIERARCHY).paired(form(TRUE), form(PREDICTED)), f1)


@pytest.mark.parametrize("name", ["hierarchical_f1", "hierarchical_precision", "hierarchical_recall"])
def test_scorings_take_the_hierarchy_from_the_kernel(name):
    metric = as_scoring(name).metric
    expected = {"f1": hierarchical_f1, "precision": hierarchical_precision, "recall": hierarchical_recall}
    function = expected[name.removeprefix("hierarchical_")]
    assert metric(TRUE, PREDICTED, HierarchicalDice(HIERARCHY)) == function(TRUE, PREDICTED, HIERARCHY)
    with pytest.raises(ValueError, match="from the output kernel HierarchicalDice"):
        metric(TRUE, PREDICTED, Dice())


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="Y_pred has 2 columns"):
        hierarchical_f1(TRUE[:1], [[0, 1]], HIERARCHY)
    with pytest.raises(TypeError, match="must be a Hierarchy"):
        hierarchical_f1(TRUE, PREDICTED, [-1, 0])
