"""Branch and bound over all label sets with the Tanimoto kernel, against brute force and bounds that must hold."""

import numpy as np
import pytest
from hypothesis import given

from psilearn import IOKR
from psilearn._backend import NUMPY
from psilearn.decoding import AllLabelSets
from psilearn.decoding.label_sets import all_label_sets
from psilearn.decoding.label_sets.label_rows import to_label_rows
from psilearn.decoding.label_sets.set_limits import SetLimits
from psilearn.decoding.label_sets.tanimoto import TanimotoSolver, _Node, _Search
from psilearn.embedding import Embedding
from psilearn.kernels import Gaussian, Tanimoto
from tests.decoding.label_sets.set_cases import all_sets, cases, distances, draw_case, draw_sets
from tests.kernels.kernel_cases import PROPERTY


def make_solver(landmarks, L, smallest=0, largest=None):
    limits = SetLimits.of(L, smallest, largest, None, "at_most_one")
    return TanimotoSolver(to_label_rows(landmarks, False), limits, 10**5)


@PROPERTY
@given(case=cases)
def test_the_nearest_sets_are_those_of_brute_force(case):
    embedding, Z = draw_case(Tanimoto(), *case)
    L = case[0]
    sets = all_sets(L)
    tolerance = 1e-9 * (1 + np.sum(Z**2))
    for k, smallest in ((1, 0), (3, 1)):
        allowed = sets[sets.sum(axis=1) >= smallest]
        k = min(k, len(allowed))
        found = make_solver(embedding.landmarks, L, smallest).nearest(Z, embedding.basis, k, NUMPY)
        expected = np.sort(distances(embedding, Z, allowed), axis=1)[:, :k]
        np.testing.assert_allclose(found.distances, expected, atol=tolerance)
        rows = found.rows.toarray().astype(int).reshape(len(Z), k, L)
        for i in range(len(Z)):
            assert len(np.unique(rows[i], axis=0)) == k
            np.testing.assert_allclose(distances(embedding, Z[i : i + 1], rows[i])[0], expected[i], atol=tolerance)


def test_bounds_hold_for_every_node():
    rng = np.random.default_rng(0)
    landmarks, L = draw_sets(rng, 10, 8), 8
    sets = all_sets(L)
    for _ in range(60):
        beta = rng.standard_normal(10)
        search = _Search(make_solver(landmarks, L), beta, 1, 0.0)
        state = rng.integers(0, 3, L)  # contained, lacking, free
        inside, free = state == 0, state == 2
        size = int(rng.integers(max(1, inside.sum()), inside.sum() + free.sum() + 1)) if (inside | free).any() else 0
        if not size:
            continue
        members = sets[(sets.sum(axis=1) == size) & (sets[:, inside] == 1).all(1) & (sets[:, state == 1] == 0).all(1)]
        scores = beta @ Tanimoto()(members, landmarks).T
        relaxed = search._relax(_Node(size, inside, free))
        assert relaxed.bound >= scores.max() - 1e-12
        assert all(np.isclose(scores, score).any() for score in search.found.values())


def test_estimators_use_it_where_sets_cannot_be_listed(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3))
    Y = (X @ rng.standard_normal((3, 7)) > 0.5).astype(int)
    model = IOKR(Gaussian(0.5), Tanimoto(), alpha=1e-2).fit(X, Y)
    expected = model.predict_topk(X[:8], 1, "all")
    monkeypatch.setattr(all_label_sets, "MAX_LISTED_SETS", 10)
    found = model.predict_topk(X[:8], 1, "all")
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-9)
    np.testing.assert_allclose(model.predict_topk(X[:8], 1, found.nearest).distances, expected.distances, atol=1e-9)


def test_a_search_that_takes_too_long_raises():
    rng = np.random.default_rng(2)
    landmarks = draw_sets(rng, 30, 20)
    sets = AllLabelSets(Embedding(Tanimoto(), landmarks, np.eye(30)), landmarks, max_nodes=25)
    with pytest.raises(ValueError, match="was not proven for query 0 within 25 nodes: limit the sizes"):
        sets.nearest(rng.standard_normal((2, 30)), 1)
