"""Conformal sets: their coverage, and their members."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from psilearn import IOKR, KDE, OEL, PerExampleCandidates
from psilearn.conformal import threshold
from psilearn.kernels import Gaussian, Kemeny, Linear
from psilearn.rankings import all_rankings


def problem(n, seed):
    """Noisy points near a curve; each has its own candidates, of various numbers, the truth among them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0]]) + 0.3 * rng.standard_normal((n, 2))
    sets = []
    for y in Y:
        others = rng.uniform(-2.5, 2.5, (rng.integers(0, 25), 2))
        sets.append(np.insert(others, rng.integers(0, len(others) + 1), y, axis=0))
    return X, Y, PerExampleCandidates(sets)


def contains_truth(sets, Y):
    return np.array(
        [
            bool((np.abs(outputs - y).max(axis=1) < 1e-12).any()) if len(outputs) else False
            for outputs, y in zip(sets, Y, strict=True)
        ]
    )


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_coverage(coverage):
    """Over 60 calibrations the mean coverage lies between the asked one and the asked one + 1/(n+1).

    The upper bound needs scores without ties: where the threshold is 0, every nearest candidate is in.
    """
    X, Y, _ = problem(80, 0)
    model = OEL(Gaussian(1.0), Linear(), alpha=1e-2, n_components=2).fit(X, Y)
    n, rates = 99, []
    for seed in range(60):
        A, B = problem(n, 2 * seed + 1), problem(200, 2 * seed + 2)
        model.calibrate(A[0], A[1], A[2])
        rates.append(contains_truth(model.predict_set(B[0], coverage, B[2]).outputs, B[1]).mean())
    error = np.std(rates) / np.sqrt(len(rates))
    assert np.mean(rates) >= coverage - 3 * error
    if coverage >= 0.8:
        assert model.predict_set(X[:1], coverage, [Y]).threshold > 0
        assert np.mean(rates) <= coverage + 1 / (n + 1) + 3 * error


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    "model", [IOKR(Gaussian(1.0), Linear(), alpha=1e-2), KDE(Gaussian(1.0), Linear(), alpha=1e-2, n_components=1)]
)
def test_sets_are_the_nearest_candidates_within_the_threshold(model):
    X, Y, _sets = problem(60, 0)
    model.fit(X, Y)
    A = problem(40, 1)
    model.calibrate(*A)
    B = problem(30, 2)
    found = model.predict_set(B[0], 0.8, B[2])
    top = model.predict_topk(B[0], 100, B[2])
    own = []
    for i in range(40):  # by hand
        D = model.predict_topk(A[0][i : i + 1], 100, PerExampleCandidates([A[2].sets[i]]))
        place = list(D.indices[0]).index(int(np.flatnonzero((A[2].sets[i] == A[1][i]).all(axis=1))[0]))
        own.append((place + 1) * np.sqrt(D.distances[0][place] - D.distances[0, 0]))  # no two tie here
    limit = np.sort(own)[int(np.ceil(41 * 0.8)) - 1]
    assert found.threshold == pytest.approx(limit)
    for i in range(30):
        kept = np.arange(1, top.indices.shape[1] + 1) * np.sqrt(top.distances[i] - top.distances[i, 0]) <= limit + 1e-9
        np.testing.assert_array_equal(found.indices[i], top.indices[i][kept])
    assert found.sizes.tolist() == [len(one) for one in found.outputs]


@pytest.mark.usefixtures("backend")
def test_more_coverage_needs_more_candidates():
    X, Y, sets = problem(60, 0)
    model = IOKR(Gaussian(1.0), Linear(), alpha=1e-2).fit(X, Y).calibrate(*problem(50, 1))
    sizes = [model.predict_set(X, coverage, sets).sizes for coverage in (0.0, 0.3, 0.6, 0.9, 0.98, 1.0)]
    assert all((a <= b).all() for a, b in itertools.pairwise(sizes))
    assert not sizes[0].any()
    assert sizes[-1].tolist() == [len(one) for one in sets.sets]  # 50 examples cannot promise everything


@pytest.mark.usefixtures("backend")
def test_shared_candidates():
    X, Y, _ = problem(60, 0)
    model = IOKR(Gaussian(1.0), Linear(), alpha=1e-2).fit(X, Y)
    everything = np.concatenate([Y, problem(80, 5)[1]])
    model.calibrate(X[:30], Y[:30], everything)
    found = model.predict_set(X, 0.9, everything)
    assert contains_truth(found.outputs, Y)[:30].mean() >= 0.9 - 1e-9


@pytest.mark.usefixtures("backend")
def test_rankings_are_listed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    Y = np.argsort(np.argsort(X @ rng.standard_normal((3, 4)), axis=1), axis=1) + 1
    model = IOKR(Gaussian(0.2), Kemeny(), alpha=1e-3).fit(X[:30], Y[:30]).calibrate(X[30:], Y[30:])
    found = model.predict_set(X[30:], 0.9)
    assert contains_truth(found.outputs, Y[30:]).mean() >= 0.9
    assert found.sizes.max() <= len(all_rankings(4))


@pytest.mark.usefixtures("backend")
def test_a_truth_that_is_not_a_candidate_counts_as_infinitely_far():
    X, Y, sets = problem(40, 0)
    model = IOKR(Gaussian(1.0), Linear(), alpha=1e-2).fit(X, Y)
    half = PerExampleCandidates([one if i % 2 else one + 9.0 for i, one in enumerate(sets.sets)])
    model.calibrate(X, Y, half)
    assert np.isinf(model.calibration_scores_).sum() == 20
    assert np.isinf(model.predict_set(X[:2], 0.9, sets.sets[:2]).threshold)
    with pytest.raises(ValueError, match="nothing to calibrate on"):
        model.calibrate(X, Y, PerExampleCandidates([one + 9.0 for one in sets.sets]))


@pytest.mark.usefixtures("backend")
def test_a_new_fit_forgets_the_calibration():
    X, Y, sets = problem(40, 0)
    model = OEL(Gaussian(1.0), Linear(), alpha=1e-2, n_components=2, output_landmarks=20).fit(X, Y)
    with pytest.raises(NotFittedError, match="calibrate"):
        model.predict_set(X, 0.9, sets)
    model.calibrate(X, Y, sets).predict_set(X, 0.9, sets)
    model.partial_fit(Y)
    with pytest.raises(NotFittedError, match="calibrate"):
        model.predict_set(X, 0.9, sets)
    model.calibrate(X, Y, sets).fit(X, Y)
    with pytest.raises(NotFittedError, match="calibrate"):
        model.predict_set(X, 0.9, sets)
    with pytest.raises(NotFittedError):
        OEL().predict_set(X)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, "high", None])
def test_bad_coverage(bad):
    with pytest.raises(ValueError, match="coverage must be a number in"):
        threshold(np.array([0.1]), bad)


@pytest.mark.usefixtures("backend")
def test_candidates_that_tie_are_in_together():
    """The truth occurs twice: both copies are in, or none."""
    X, Y, sets = problem(60, 0)
    doubled = PerExampleCandidates([np.concatenate([one, one]) for one in sets.sets])
    model = IOKR(Gaussian(1.0), Linear(), alpha=1e-2).fit(X, Y).calibrate(X, Y, doubled)
    found = model.predict_set(X, 0.7, doubled)
    assert (found.sizes % 2 == 0).all()
    assert 0 < np.mean(found.sizes) < np.mean([len(one) for one in doubled.sets])


def test_the_threshold_is_the_order_statistic():
    scores = np.random.default_rng(0).permutation(np.arange(1.0, 100.0))
    assert [threshold(scores, c) for c in (0.5, 0.9, 0.99, 0.991)] == [50.0, 90.0, 99.0, np.inf]


def test_a_coverage_that_absent_truths_rule_out_is_warned_of():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 2)), rng.integers(0, 2, (60, 3))
    model = IOKR(Gaussian(1.0), Linear(), alpha=1e-2).fit(X, Y)
    few = np.unique(Y, axis=0)[:4]
    model.calibrate(X, Y, candidates=few)
    with pytest.warns(UserWarning, match=r"was not among their candidates: a coverage of 95% cannot be reached"):
        sets = model.predict_set(X[:3], coverage=0.95, candidates=few)
    assert (sets.sizes == 4).all()
