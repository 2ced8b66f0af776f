"""Ranked candidates against plain sorting of brute-force distances, with ties."""

import numpy as np
import pytest
import sklearn

from psilearn._backend import current_compute
from psilearn.conformal import prediction_sets, threshold
from psilearn.decoding import PerExampleCandidates, SharedCandidates, join_rankings, ranked_candidates
from psilearn.embedding import Embedding
from psilearn.kernels import Linear

pytestmark = pytest.mark.usefixtures("backend")

RNG = np.random.default_rng(0)
E = Embedding(Linear(), np.eye(3), np.eye(3)[:, :2])
Z = RNG.integers(-2, 3, (8, 2)).astype(float)
SETS = [RNG.integers(-2, 3, (size, 3)).astype(float) for size in (1, 2, 30, 30, 5, 17, 9, 30)]


def brute_force(z, outputs, ties):
    """Return indices, distances, margins, positions and scores by plain sorting, which is exact for integers."""
    D = z @ z - 2 * outputs[:, :2] @ z + (outputs**2).sum(axis=1)
    order = np.argsort(D, kind="stable")
    D = D[order]
    margins = np.append(np.diff(D), np.inf)
    first, last = np.searchsorted(D, D, side="left") + 1, np.searchsorted(D, D, side="right")
    positions = {"expected": (first + last) / 2, "optimistic": first, "pessimistic": last}[ties]
    return order, D, margins, positions, last * np.sqrt(D - D[0])


def forms():
    pool = np.concatenate(SETS)
    stops = np.cumsum([len(part) for part in SETS])
    rows = [slice(stop - len(part), stop) for stop, part in zip(stops, SETS, strict=True)]
    return {
        "sets": (PerExampleCandidates(SETS).for_embedding(E), SETS),
        "parts": (SharedCandidates.build(pool, E).per_example(rows), SETS),
        "shared": (SharedCandidates(pool, E), [pool] * 8),
    }


@pytest.mark.parametrize("form", ["sets", "parts", "shared"])
@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic"])
@pytest.mark.parametrize("k", [None, 1, 4])
@pytest.mark.parametrize("working_memory", [1024, 1e-3])
def test_all_candidates_in_order(form, ties, k, working_memory):
    candidates, sets = forms()[form]
    with sklearn.config_context(working_memory=working_memory):
        results = list(ranked_candidates(Z, candidates, current_compute(), k=k, ties=ties, limit=2.5))
    assert len(results) == 8
    for z, outputs, ranked in zip(Z, sets, results, strict=True):
        order, D, margins, positions, scores = brute_force(z, outputs, ties)
        for mine, expected in (
            (ranked.indices, order),
            (ranked.distances, D),
            (ranked.margins, margins),
            (ranked.positions, positions),
            (ranked.scores, scores),
            (ranked.in_set, scores <= 2.5),
            (ranked.outputs, outputs[order]),
        ):
            np.testing.assert_allclose(mine, expected[:k], atol=1e-12)
        assert ranked.n_candidates == len(outputs) and ranked.set_size == (scores <= 2.5).sum()


@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic"])
@pytest.mark.parametrize("k", [None, 4])
def test_rankings_of_parts_are_joined_to_that_of_all_candidates(ties, k):
    compute, z = current_compute(), Z[:1]
    whole = np.concatenate(SETS)
    (expected,) = ranked_candidates(
        z, PerExampleCandidates([whole]).for_embedding(E), compute, k=k, ties=ties, limit=2.5
    )
    parts = list(ranked_candidates(np.repeat(z, 8, axis=0), forms()["sets"][0], compute))
    joined = join_rankings(parts, k=k, ties=ties, limit=2.5)
    for name in ("indices", "distances", "margins", "positions", "scores", "in_set", "outputs"):
        np.testing.assert_allclose(getattr(joined, name), getattr(expected, name), atol=1e-12, err_msg=name)
    assert (joined.n_candidates, joined.set_size) == (expected.n_candidates, expected.set_size)
    assert join_rankings(parts, ties=ties).set_size is None


def test_only_complete_rankings_are_joined():
    parts = list(ranked_candidates(Z, forms()["sets"][0], current_compute(), k=1))
    for bad in ([], parts):
        with pytest.raises(ValueError, match="rankings of all candidates"):
            join_rankings(bad)
    with pytest.raises(TypeError, match="parts must be a list"):
        join_rankings(parts[0])


def test_without_calibration_there_are_no_sets():
    ranked = next(ranked_candidates(Z, forms()["sets"][0], current_compute()))
    assert ranked.in_set is None and ranked.set_size is None


def test_members_are_those_of_the_prediction_sets():
    candidates, _ = forms()["sets"]
    limit = threshold(RNG.random(50) * 4, 0.8)
    sets = prediction_sets(Z, candidates, limit, 0.8, current_compute())
    for i, ranked in enumerate(ranked_candidates(Z, candidates, current_compute(), limit=limit)):
        np.testing.assert_array_equal(ranked.indices[ranked.in_set], sets.indices[i])
        assert ranked.set_size == sets.sizes[i]


@pytest.mark.parametrize(("options", "message"), [({"ties": "random"}, "ties must be"), ({"k": 0}, "k must be")])
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        next(ranked_candidates(Z, forms()["sets"][0], current_compute(), **options))


def test_bad_arguments_are_rejected_at_the_call():
    candidates = SharedCandidates(SETS[2], E)
    with pytest.raises(ValueError, match="k must be an integer ≥ 1"):
        ranked_candidates(Z, candidates, current_compute(), k=0)
    with pytest.raises(ValueError, match="ties must be one of"):
        ranked_candidates(Z, candidates, current_compute(), ties="bad")
    with pytest.raises(ValueError, match="Z must have shape"):
        ranked_candidates(Z[:, :1], candidates, current_compute())
