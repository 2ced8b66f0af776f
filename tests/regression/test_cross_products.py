"""Products of features with targets are summed in order, whenever the targets are ready."""

import numpy as np
import pytest

from psilearn._backend import NUMPY
from psilearn.regression.cross_products import MAX_WAITING, CrossProducts

RNG = np.random.default_rng(0)
PHI, V = RNG.standard_normal((5, 40)), RNG.standard_normal((40, 3))
BLOCKS = [slice(start, start + 10) for start in range(0, 40, 10)]


class LateTargets:
    """Targets whose first ``n_ready`` rows are known."""

    max_width, shape = 3, (40, 3)

    def __init__(self):
        self.n_ready, self.asked = 0, []

    def start(self):
        pass

    def prepare(self, rows):
        pass

    def is_ready(self, rows):
        return rows.stop <= self.n_ready

    def factor(self, rows):
        self.asked.append(rows.start)
        return V[rows]

    def __getitem__(self, rows):
        return V[rows]


def test_blocks_wait_for_their_targets_up_to_a_number():
    targets = LateTargets()
    products = CrossProducts(5, targets, NUMPY)
    for n_added, rows in enumerate(BLOCKS[:MAX_WAITING], start=1):
        products.add(rows, PHI[:, rows])
        assert targets.asked == [] and n_added <= MAX_WAITING
    products.add(BLOCKS[MAX_WAITING], PHI[:, BLOCKS[MAX_WAITING]])
    assert targets.asked == [0]  # only so many blocks stay in memory
    targets.n_ready = 40
    products.add(BLOCKS[3], PHI[:, BLOCKS[3]])
    assert targets.asked == [0, 10, 20, 30]
    np.testing.assert_allclose(products.finish(), PHI @ V)


@pytest.mark.parametrize("targets", [V, LateTargets()], ids=["array", "late"])
def test_the_sum_is_that_of_all_blocks(targets):
    products = CrossProducts(5, targets, NUMPY)
    for rows in BLOCKS:
        products.add(rows, PHI[:, rows])
    np.testing.assert_allclose(products.finish(), PHI @ V)
    np.testing.assert_allclose(CrossProducts.of(PHI @ V, targets, NUMPY).finish(), PHI @ V)
