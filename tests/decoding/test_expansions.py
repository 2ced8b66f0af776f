"""Distances from combinations of landmarks against those from embeddings."""

import numpy as np
import pytest

from psilearn import IOKR, OEL, Landmarks, PerExampleCandidates
from psilearn._backend import current_compute
from psilearn.decoding import expansions
from psilearn.decoding.distances import count_nearer, first_smallest
from psilearn.decoding.expansions import Expansions, distances_in_sets
from psilearn.kernels import Gaussian, GaussianTanimoto, Linear

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = (RNG.random((40, 12)) < 0.4).astype(float)
SETS = PerExampleCandidates(
    [np.concatenate([Y[i : i + 1], (RNG.random((k, 12)) < 0.4)]) for i, k in enumerate(RNG.integers(0, 30, 40))]
)
MODELS = [
    IOKR(Gaussian(0.3), GaussianTanimoto(), alpha=1e-2),
    OEL(Gaussian(0.3), GaussianTanimoto(), alpha=1e-2, n_components=5, supervision=1.0),
    OEL(Gaussian(0.3), GaussianTanimoto(), alpha=1e-2, n_components=7, supervision=0.5),
    OEL(Gaussian(0.3), Linear(), alpha=1e-2, n_components=4, supervision=0.3, output_landmarks=10),
    OEL(
        Gaussian(0.3),
        GaussianTanimoto(),
        alpha=1e-2,
        n_components=6,
        supervision=0.5,
        output_landmarks=Landmarks(45, "labeled"),
    ),
]


def expansion_of(model, dtype=np.float64):
    predictions = Expansions.of(model.embed(X), model.embedding_)
    return Expansions(predictions.kernel, predictions.landmarks, predictions.weights.astype(dtype), predictions.squared)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_distances_are_those_of_the_embedding(model):
    model.fit(X, Y, unlabeled=(RNG.random((60, 12)) < 0.4).astype(float))
    top = model.predict_topk(X, 40, SETS)
    seen = []
    for i, D, _ in distances_in_sets(expansion_of(model), *SETS._different, current_compute()):
        order = top.indices[i][top.indices[i] >= 0]
        np.testing.assert_allclose(D[0][order], top.distances[i][: len(order)], rtol=0, atol=1e-10)
        seen.append(i)
    assert sorted(seen) == list(range(40))


@pytest.mark.parametrize("max_rows", [1, 7, 8192])
def test_positions_are_those_of_the_model(max_rows, monkeypatch):
    monkeypatch.setattr(expansions, "MAX_POOL_ROWS", max_rows)
    distinct = SETS.distinct()
    truth = distinct.match(Y)
    models = [model.fit(X, Y) for model in MODELS[:2]]
    landmarks = models[0].embedding_.landmarks
    np.testing.assert_array_equal(landmarks, models[1].embedding_.landmarks)
    each = [expansion_of(model) for model in models]
    both = Expansions(
        models[0].output_kernel_,
        landmarks,
        np.concatenate([part.weights for part in each], axis=1),
        np.concatenate([part.squared for part in each], axis=1),
    )
    expected = [model.truth_positions(X, Y, distinct) for model in models]
    nearest = np.array([model.predict_topk(X, 1, distinct).indices[:, 0] for model in models])
    for i, D, slack in distances_in_sets(both, *distinct._different, current_compute()):
        np.testing.assert_array_equal(first_smallest(D, slack)[0][:, 0], nearest[:, i])
        column = slice(truth[i], truth[i] + 1)
        nearer, tied = count_nearer(D, slack, D[:, column], slack[:, column])
        np.testing.assert_array_equal(nearer, [positions.nearer[i] for positions in expected])
        np.testing.assert_array_equal(tied, [positions.tied[i] for positions in expected])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_candidates_have_equal_distances(dtype):
    """Three candidates have the fingerprint of the truth: the positions 1 to 3 are equally likely."""
    sets = PerExampleCandidates([np.concatenate([Y[i : i + 1]] * 3 + [1 - Y[i : i + 1]]) for i in range(40)])
    model = MODELS[0].fit(X, Y)
    for _, D, slack in distances_in_sets(expansion_of(model, dtype), *sets._different, current_compute()):
        assert D.shape == slack.shape == (1, 4)
        assert D[0, 0] == D[0, 1] == D[0, 2]
        assert count_nearer(D, slack, D[:, 1:2], slack[:, 1:2])[1] == 3
        assert first_smallest(D, slack)[0] in (0, 3)  # the first of those that tie
