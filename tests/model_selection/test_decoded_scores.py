"""Scores by pairs of true outputs and candidates against the metric of each setting's predictions."""

import numpy as np
import pytest
from scipy import sparse

from psilearn import IOKRCV, OELCV
from psilearn._backend import NUMPY
from psilearn._utils.samples import take
from psilearn.decoding import PerExampleCandidates, SharedCandidates
from psilearn.embedding import OutputCoordinates
from psilearn.kernels import Dice, Kemeny, Pairwise
from psilearn.metrics import Mean, f1_score, hamming_loss, kendall_tau, top_k_accuracy
from psilearn.model_selection import scoring
from psilearn.model_selection.scoring import DecodedScores, as_scoring, as_scorings
from tests.model_selection.refits import GRID, KERNELS_X
from tests.problems import make

pytestmark = pytest.mark.filterwarnings("ignore:The best:UserWarning", "ignore:n_components=:UserWarning")

RNG = np.random.default_rng(0)
Q, SIZES, N_STEPS = 30, [1, 3, 6], 7
KNOWN = (RNG.random((20, 6)) < 0.4).astype(float)
TRUTH = KNOWN[RNG.integers(0, 20, Q)]  # repeats


def shared_letters(a, b):
    return float(sum(x == y == "1" for x, y in zip(a, b, strict=True)) + (a == b))


FORMS = {
    "array": (np.asarray, Dice()),
    "csr": (sparse.csr_matrix, Dice()),
    "strings": (lambda Y: ["".join(map(str, row)) for row in Y.astype(int)], Pairwise(shared_letters)),
}


def make_decoder(form, own_sets, truth=None):
    to_form, kernel = FORMS[form]
    known = to_form(KNOWN)
    embedding = OutputCoordinates(kernel, known, NUMPY).embedding()
    candidates = SharedCandidates(known).distinct()
    if own_sets:
        candidates = PerExampleCandidates([take(known, np.r_[i % 5, 5 + i % 7 : 18]) for i in range(Q)])
    return candidates.path_decoder(embedding, SIZES, NUMPY, truth)


def random_steps(width):
    rng = np.random.default_rng(1)
    return [rng.standard_normal((Q, width)) for _ in range(N_STEPS)]


def both_routes(form, own_sets, scorings):
    """Return the scores by pairs, and the metric of the predictions of each step and size."""
    truth, kernel = FORMS[form][0](TRUTH), FORMS[form][1]
    matches = np.arange(Q) % 7 if any(scoring.top_k for scoring in scorings) else None
    scored = DecodedScores(make_decoder(form, own_sets, matches), scorings, truth, kernel)
    direct = make_decoder(form, own_sets, matches)
    for Z in random_steps(6):
        scored.add(None, Z)
        direct.add(None, Z)

    def score(scoring, step, size):
        if scoring.top_k is not None:
            return float(top_k_accuracy(direct.positions(step, size), scoring.top_k))
        return float(scoring.metric(truth, direct.outputs(step, size), kernel))

    expected = {s.name: [[score(s, i, j) for j in range(len(SIZES))] for i in range(N_STEPS)] for s in scorings}
    return {s.name: scored.scores(s.name) for s in scorings}, expected


@pytest.mark.parametrize("own_sets", [False, True])
@pytest.mark.parametrize("form", ["array", "csr"])
def test_scores_are_those_of_the_predictions_of_each_setting(form, own_sets):
    names = ["f1", "hamming", "jaccard", "subset_accuracy", "loss", "top_2", "f1_micro"]
    scores, expected = both_routes(form, own_sets, as_scorings([*names, minus_labels, label_means]))
    for name, table in scores.items():
        np.testing.assert_array_equal(table, expected[name], err_msg=name)
        assert len(np.unique(table)) > 3, name


@pytest.mark.parametrize("own_sets", [False, True])
def test_scores_of_objects_that_are_not_rows(own_sets):
    scores, expected = both_routes("strings", own_sets, as_scorings(["loss", equal_letters]))
    for name, table in scores.items():
        np.testing.assert_array_equal(table, expected[name])


def minus_labels(y, prediction):
    """A score of the whole that is not a mean over examples."""
    return -(abs(float(y.sum()) - float(prediction.sum())) ** 0.5)


def label_means(y, prediction):
    """A mean with one value per label and not per example."""
    difference = abs(y - prediction)
    return Mean(np.asarray(difference.mean(axis=0)).ravel() ** 2)


def equal_letters(y, prediction):
    """One value per example."""
    return [sum(a == b for a, b in zip(u, v, strict=True)) for u, v in zip(y, prediction, strict=True)]


@pytest.mark.parametrize(("own_sets", "max_table"), [(False, 2**16), (False, 0), (True, 2**16)])
def test_each_pair_of_different_outputs_is_compared_once(own_sets, max_table, monkeypatch):
    monkeypatch.setattr(scoring, "MAX_TABLE", max_table)
    seen = []

    def compare(y, prediction):
        seen.append([(u.tobytes(), v.tobytes()) for u, v in zip(y, prediction, strict=True)])
        return f1_score(y, prediction)

    scored = DecodedScores(make_decoder("array", own_sets), [as_scoring(compare)], TRUTH, Dice())
    for Z in random_steps(6) * 2:
        scored.add(None, Z)
    after_the_first = [pair for pairs in seen[1:] for pair in pairs]
    if own_sets:  # the same pair in two examples may be compared twice
        assert len(after_the_first) < N_STEPS * len(SIZES) * Q / 2
    else:
        n_pairs = len(np.unique(TRUTH, axis=0)) * len(np.unique(KNOWN, axis=0))
        assert len(after_the_first) == len(set(after_the_first)) <= n_pairs
        assert (len(after_the_first) == n_pairs) == (max_table > 0)
    assert scored.scores("compare").shape == (2 * N_STEPS, len(SIZES))


def test_other_metrics_are_computed_once_for_the_same_predictions():
    calls = []
    scoring = as_scoring(lambda y, prediction: calls.append(1) or minus_labels(y, prediction))
    scored = DecodedScores(make_decoder("array", False), [scoring], TRUTH, Dice())
    for Z in random_steps(6) * 3:
        scored.add(None, Z)
    table = scored.scores(scoring.name)
    assert len(calls) <= N_STEPS * len(SIZES) + 1  # the first one shows what the metric returns
    np.testing.assert_array_equal(table[:N_STEPS], table[N_STEPS : 2 * N_STEPS])


def test_results_of_steps_are_not_kept():
    scored = DecodedScores(make_decoder("array", False), as_scorings("f1"), TRUTH, Dice())
    for Z in random_steps(6):
        scored.add(None, Z)
        assert not scored.decoder._steps


def test_a_mean_whose_length_is_that_of_the_examples_by_chance(monkeypatch):
    scores, expected = both_routes("array", False, as_scorings([mean_of_30]))
    np.testing.assert_array_equal(scores["mean_of_30"], expected["mean_of_30"])


def mean_of_30(y, prediction):
    return Mean(np.linspace(0, float(abs(y - prediction).mean()), Q))


def test_all_rankings_are_numbered():
    problem = make("rankings")
    search = IOKRCV(KERNELS_X, Kemeny(), alphas=[1e-3, 1e-1], cv=3, scoring=["kendall_tau", whole_tau, kendall_tau])
    search.set_params(scoring=["kendall_tau", whole_tau]).fit(problem.X, problem.Y)
    results = search.cv_results_
    np.testing.assert_allclose(results["mean_test_whole_tau"], results["mean_test_kendall_tau"], rtol=1e-12)


def whole_tau(y, prediction):
    return float(kendall_tau(y, prediction))


def test_functions_with_one_value_per_example_in_a_search():
    problem = make("tags")

    def hamming_values(y, prediction):
        return np.abs(y - prediction).mean(axis=1)

    search = OELCV(KERNELS_X, Dice(), **GRID, scoring=[hamming_values, hamming_loss]).fit(problem.X, problem.Y)
    results = search.cv_results_
    np.testing.assert_allclose(results["mean_test_hamming_values"], results["mean_test_hamming_loss"], rtol=1e-12)
    assert search.score(problem.X, problem.Y) == pytest.approx(
        float(hamming_loss(problem.Y, search.predict(problem.X)))
    )
    with pytest.raises(ValueError, match=r"one value per example, of shape \(\d+,\); got shape \(\d+, 6\)"):
        search.set_params(scoring=lambda y, prediction: y == prediction).fit(problem.X, problem.Y)


@pytest.mark.parametrize("own_sets", [False, True])
def test_pairs_are_compared_in_blocks(own_sets, monkeypatch):
    monkeypatch.setattr(scoring, "MIN_BLOCK_ROWS", 1)
    sizes = []
    evaluate = scoring.MetricScores._evaluate

    def record(self, examples, indices):
        sizes.append(len(examples))
        return evaluate(self, examples, indices)

    monkeypatch.setattr(scoring.MetricScores, "_evaluate", record)
    scores, expected = both_routes("array", own_sets, as_scorings("f1"))
    np.testing.assert_array_equal(scores["f1"], expected["f1"])
    assert max(sizes) == Q and len(sizes) > 2
