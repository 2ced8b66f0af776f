"""The kernel of label sets with ancestors is Dice of closed sets."""

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKR, load_model, save_model
from psilearn.kernels import Dice, Gaussian, HierarchicalDice, Hierarchy

HIERARCHY = Hierarchy([-1, 0, 0, [1, 2], 2], names=list("abcde"))
RNG = np.random.default_rng(0)
Y = (RNG.random((20, 5)) < 0.3).astype(int)
X = RNG.standard_normal((20, 3))


def test_dice_of_closed_sets():
    kernel, closed = HierarchicalDice(HIERARCHY), HIERARCHY.close(Y)
    assert np.array_equal(kernel(Y), Dice()(closed))
    assert np.array_equal(kernel(sparse.csr_matrix(Y), sparse.csr_matrix(Y)), Dice()(closed))
    np.testing.assert_allclose(Gaussian(0.5, kernel)(Y), Gaussian(0.5, Dice())(closed))


def test_a_saved_model_has_the_hierarchy(tmp_path):
    model = IOKR(Gaussian(1.0), HierarchicalDice(HIERARCHY), alpha=1e-3).fit(X, Y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.output_kernel_.hierarchy == HIERARCHY
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("kernel", "rows", "message"),
    [
        (HierarchicalDice([-1, 0]), [[1, 0]], "hierarchy of HierarchicalDice must be a Hierarchy"),
        (HierarchicalDice(HIERARCHY), [[1, 0]], "A has 2 columns, but the hierarchy has 5 labels"),
        (HierarchicalDice(HIERARCHY), [[1, 0, 2, 0, 0]], "0/1 rows"),
    ],
)
def test_bad_input_is_named(kernel, rows, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernel(rows)
