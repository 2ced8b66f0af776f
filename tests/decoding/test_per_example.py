"""One set an example: groups of padded sets against each set alone."""

import time

import numpy as np
import pytest
import sklearn

from psilearn import OEL
from psilearn.decoding import CandidateSet, CandidateSets, nearest, rank_of_truth
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Linear

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
E = Embedding(Linear(), np.eye(5), np.eye(5)[:, :4])


def ragged(n):
    shared = RNG.standard_normal((9, 5)).round(1)
    sets = [RNG.standard_normal((RNG.integers(1, 30), 5)).round(1) for _ in range(n)]
    for i in range(0, n, 3):
        sets[i] = shared  # the same object
    sets[1] = np.tile(sets[1][:1], (7, 1))  # ties
    return sets


@pytest.mark.parametrize("working_memory", [1024, 1e-2, 1e-4])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_groups_answer_as_each_set_alone(working_memory, k):
    sets, Z = ragged(40), RNG.standard_normal((40, 4))
    truth = np.array([one[0] for one in sets])
    truth[5] = 99  # no candidate
    with sklearn.config_context(working_memory=working_memory):
        top = nearest(Z, CandidateSets(sets), E, k)
        ranks = rank_of_truth(Z, truth, CandidateSets(sets), E)
    assert top.indices.shape[1] == min(k, max(map(len, sets)))
    for i, one in enumerate(sets):
        shared = CandidateSet.build(one, E)
        alone = nearest(Z[i : i + 1], shared, E, k)
        size = alone.indices.shape[1]
        np.testing.assert_array_equal(top.indices[i, :size], alone.indices[0])
        np.testing.assert_allclose(top.distances[i, :size], alone.distances[0], atol=1e-12)
        assert (top.indices[i, size:] == -1).all() and np.isinf(top.distances[i, size:]).all()
        rank = rank_of_truth(Z[i : i + 1], truth[i : i + 1], shared, E)
        assert (ranks.nearer[i], ranks.tied[i]) == (rank.nearer[0], rank.tied[0])


class Counting(Linear):
    """A linear kernel that counts the objects it has seen."""

    seen = 0

    def __call__(self, A, B=None):
        Counting.seen += len(A)
        return super().__call__(A, B)


def test_a_set_that_is_one_object_is_embedded_once():
    one = RNG.standard_normal((50, 5))
    Counting.seen = 0
    nearest(RNG.standard_normal((30, 4)), CandidateSets([one] * 30), Embedding(Counting(), np.eye(5), E.basis), 2)
    assert Counting.seen == 50


def test_a_checked_set_stays_one_object():
    rows = [[0.0, 1.0], [1.0, 0.0]]
    model = OEL(Gaussian(1.0), Linear(), 1e-3).fit(np.eye(2), np.eye(2))
    checked = CandidateSets([rows, rows, list(rows)]).checked(model._check_outputs, 3)
    assert checked.sets[0] is checked.sets[1] and checked.sets[0] is not checked.sets[2]


def test_strings_share_sets_too():
    words = ["abc", "abd", "xyz"]
    model = OEL(Gaussian(1.0), lambda a, b: float(len(set(a) & set(b))), 1e-3).fit(np.eye(3), words)
    assert model.predict(np.eye(3), candidates=CandidateSets([words] * 3)) == words


def test_ten_thousand_sets_take_little_more_than_their_kernels():
    Z = RNG.standard_normal((10_000, 4))
    pool = RNG.standard_normal((10_000, 50, 5))
    sets = CandidateSets(list(pool))
    start = time.perf_counter()
    top = nearest(Z, sets, E, 5)
    assert time.perf_counter() - start < 5  # 0.2 s on an idle machine
    D = (pool**2).sum(axis=2) - 2 * np.einsum("ip,icp->ic", Z, pool[:, :, :4])
    np.testing.assert_array_equal(top.indices, np.argsort(D, axis=1)[:, :5])
