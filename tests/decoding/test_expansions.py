"""Distances from combinations of landmarks against those from embeddings."""

import numpy as np
import pytest

from psilearn import IOKR, OEL, CandidateSets, Landmarks
from psilearn.decoding.expansions import Expansions, distances_in_sets, rank_in_sets
from psilearn.kernels import Gaussian, GaussianTanimoto, Linear

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = (RNG.random((40, 12)) < 0.4).astype(float)
SETS = CandidateSets(
    [np.concatenate([Y[i : i + 1], (RNG.random((k, 12)) < 0.4)]) for i, k in enumerate(RNG.integers(0, 30, 40))]
)
MODELS = [
    IOKR(Gaussian(0.3), GaussianTanimoto(), 1e-2),
    OEL(Gaussian(0.3), GaussianTanimoto(), 1e-2, 5, 1.0),
    OEL(Gaussian(0.3), GaussianTanimoto(), 1e-2, 7, 0.5),
    OEL(Gaussian(0.3), Linear(), 1e-2, 4, 0.3, output_landmarks=10),
    OEL(Gaussian(0.3), GaussianTanimoto(), 1e-2, 6, 0.5, output_landmarks=Landmarks(45, "labeled")),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_distances_are_those_of_the_embedding(model):
    model.fit(X, Y, unlabeled=(RNG.random((60, 12)) < 0.4).astype(float))
    top = model.predict_topk(X, 40, SETS)
    seen = []
    for i, D, _ in distances_in_sets(Expansions.of(model.embed(X), model.embedding_), SETS):
        order = top.indices[i][top.indices[i] >= 0]
        np.testing.assert_allclose(D[0][order], top.distances[i][: len(order)], rtol=0, atol=1e-10)
        seen.append(i)
    assert seen == list(range(40))


@pytest.mark.parametrize("group", [1, 7, 8192])
def test_ranks_are_those_of_the_model(group, monkeypatch):
    monkeypatch.setattr("psilearn.decoding.expansions.GROUP", group)
    distinct = SETS.distinct()
    truth = distinct.match(Y)
    models = [model.fit(X, Y) for model in MODELS[:2]]
    landmarks = models[0].embedding_.landmarks
    np.testing.assert_array_equal(landmarks, models[1].embedding_.landmarks)
    each = [Expansions.of(model.embed(X), model.embedding_) for model in models]
    both = Expansions(
        models[0].output_kernel_,
        landmarks,
        np.concatenate([one.weights for one in each], axis=1),
        np.concatenate([one.squared for one in each], axis=1),
    )
    ranked = rank_in_sets(both, distinct, truth)
    for s, model in enumerate(models):
        expected = model.rank(X, Y, distinct)
        np.testing.assert_array_equal(ranked.ranks(s).nearer, expected.nearer)
        np.testing.assert_array_equal(ranked.ranks(s).tied, expected.tied)
        np.testing.assert_array_equal(ranked.nearest[s], model.predict_topk(X, 1, distinct).indices[:, 0])


def test_molecules_that_look_alike_tie():
    """Three candidates have the fingerprint of the truth: places 1 to 3 are equally likely."""
    sets = CandidateSets([np.concatenate([Y[i : i + 1]] * 3 + [1 - Y[i : i + 1]]) for i in range(40)])
    model = MODELS[0].fit(X, Y)
    for dtype in (np.float64, np.float32):
        one = Expansions.of(model.embed(X), model.embedding_)
        one = Expansions(one.kernel, one.landmarks, one.weights.astype(dtype), one.squared)
        ranked = rank_in_sets(one, sets, np.full(40, 1))
        assert (ranked.tied == 3).all()
        assert set(ranked.nearest.ravel()) <= {0, 3}  # the first of those that tie


def test_a_truth_that_is_no_candidate():
    model = MODELS[0].fit(X, Y)
    ranked = rank_in_sets(Expansions.of(model.embed(X), model.embedding_), SETS, np.full(40, -1))
    assert np.isinf(ranked.nearer).all()
    assert not ranked.tied.any()
