"""Products of features with targets are summed in order, whenever the targets are ready."""

import numpy as np
import pytest

from psilearn import Landmarks
from psilearn._backend import NUMPY, Compute
from psilearn.kernels import Linear
from psilearn.landmarks.features import LandmarkFeatures
from psilearn.regression import NystromRidge, cross_products, nystrom
from psilearn.regression.cross_products import MAX_WAITING, CrossProducts

RNG = np.random.default_rng(0)
PHI, V = RNG.standard_normal((5, 40)), RNG.standard_normal((40, 3))
BLOCKS = [slice(start, start + 10) for start in range(0, 40, 10)]


class LateTargets:
    """Targets whose first ``n_ready`` rows are known."""

    max_width, shape = 3, (40, 3)

    def __init__(self):
        self.n_ready, self.asked, self.prepared = 0, [], []

    is_concurrent = True

    def prepare(self, rows):
        self.prepared.append(rows)

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
    for rows in BLOCKS[:MAX_WAITING]:
        products.add(rows, PHI[:, rows])
    assert targets.asked == [] and products.is_waiting
    products.add(BLOCKS[MAX_WAITING], PHI[:, BLOCKS[MAX_WAITING]])
    assert targets.asked == [0]  # only so many blocks stay in memory
    targets.n_ready = 40
    products.add(BLOCKS[3], PHI[:, BLOCKS[3]])
    assert targets.asked == [0, 10, 20, 30]
    assert not products.is_waiting
    np.testing.assert_allclose(products.finish(), PHI @ V)


@pytest.mark.parametrize("targets", [V, LateTargets()], ids=["array", "late"])
def test_the_sum_is_that_of_all_blocks(targets):
    products = CrossProducts(5, targets, NUMPY)
    for rows in BLOCKS:
        products.add(rows, PHI[:, rows])
    np.testing.assert_allclose(products.finish(), PHI @ V)
    np.testing.assert_allclose(CrossProducts.of(PHI @ V, targets, NUMPY).finish(), PHI @ V)


@pytest.fixture
def scarce(monkeypatch):
    """Let memory end once, for the features of the third block while two others wait; returns the sizes of blocks."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(nystrom, "MAX_REGRESSION_ROWS", 10)
    sizes, compute_features = [], LandmarkFeatures.factor_and_lengths

    def fail_once(self, A, *arguments):
        sizes.append(len(A))
        if len(sizes) == 3:
            raise torch.cuda.OutOfMemoryError("no memory")
        return compute_features(self, A, *arguments)

    monkeypatch.setattr(LandmarkFeatures, "factor_and_lengths", fail_once)
    monkeypatch.setattr(
        LateTargets, "factor", lambda self, rows: self.asked.append(rows.start) or torch.tensor(V[rows])
    )
    return sizes


def test_features_that_wait_give_way_when_memory_ends(scarce):
    import torch

    targets, compute = LateTargets(), Compute(device=torch.device("cpu"))
    ridge = NystromRidge(Linear(), 0.1, Landmarks(40), compute).fit(PHI.T)
    with compute.active():
        found = ridge.regress(targets).predict(PHI.T, NUMPY)
    assert scarce == [10] * 5  # the third block was computed again, and not halved
    assert targets.asked == [0, 10, 20, 30] and targets.prepared == BLOCKS
    expected = NystromRidge(Linear(), 0.1, Landmarks(40)).fit(PHI.T).regress(V).predict(PHI.T)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("failing", ["factor", "add_product"])
def test_a_fit_fails_if_memory_does_not_suffice_for_features_that_wait(scarce, failing, monkeypatch):
    import torch

    def fail(*arguments):
        raise torch.cuda.OutOfMemoryError("no memory")

    monkeypatch.setattr(*((LateTargets, "factor") if failing == "factor" else (cross_products, "add_product")), fail)
    compute = Compute(device=torch.device("cpu"))
    ridge = NystromRidge(Linear(), 0.1, Landmarks(40), compute).fit(PHI.T)
    with compute.active(), pytest.raises(MemoryError, match="products of features with their targets"):
        ridge.regress(LateTargets())


def test_a_function_is_called_before_the_kernel_of_landmarks_is_factored(monkeypatch):
    seen = []
    factor = nystrom.LandmarkGram.factor
    monkeypatch.setattr(nystrom.LandmarkGram, "factor", lambda *given: seen.append("factor") or factor(*given))
    NystromRidge(Linear(), 0.1, Landmarks(5)).fit(PHI.T, lambda: seen.append("called"))
    assert seen == ["called", "factor"]
