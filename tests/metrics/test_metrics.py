"""Metrics compared with scikit-learn, SciPy and enumeration; each mean carries its standard error."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn import metrics as sklearn_metrics
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, cross_val_score

from psilearn.kernels import Gaussian, GaussianTanimoto, Kemeny, Linear, Pairwise, Tanimoto
from psilearn.metrics import (
    TIES,
    Mean,
    TruthPositions,
    f1_score,
    hamming_loss,
    jaccard_score,
    kendall_tau,
    kernel_loss,
    mean_reciprocal_rank,
    pairwise_accuracy,
    spearman_rho,
    subset_accuracy,
    top_k_accuracy,
)

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)

VALUES = np.random.default_rng(0).normal(size=20)
TRUE = (np.random.default_rng(1).random((30, 5)) < 0.3).astype(int)
PREDICTED = (np.random.default_rng(2).random((30, 5)) < 0.3).astype(int)
TRUE[0], PREDICTED[0], TRUE[1], PREDICTED[2] = 0, 0, 0, 0  # both empty, one empty
FORMS = [
    (np.asarray, np.asarray),
    (sparse.csr_matrix, sparse.csr_matrix),
    (sparse.csr_array, sparse.csr_array),
    (sparse.csr_matrix, np.asarray),
    (np.asarray, sparse.csr_matrix),
    (np.ndarray.tolist, np.asarray),
]
FORM_NAMES = ["dense", "csr_matrix", "csr_array", "csr and dense", "dense and csr", "list and dense"]
every_form = pytest.mark.parametrize("forms", FORMS, ids=FORM_NAMES)


# Mean


def test_a_mean_is_a_float():
    mean = Mean(VALUES)
    assert isinstance(mean, float)
    assert mean == np.mean(VALUES)
    assert mean + 1 == np.mean(VALUES) + 1
    assert f"{mean:.3f}" == f"{np.mean(VALUES):.3f}"


def test_a_mean_carries_its_standard_error_and_its_values():
    mean = Mean(VALUES)
    assert mean.standard_error == pytest.approx(stats.sem(VALUES), rel=1e-14)
    assert np.array_equal(mean.values, VALUES)


def test_a_mean_of_booleans_is_a_share():
    mean = Mean(np.array([True, False, True, True]))
    assert mean == 0.75
    assert mean.standard_error == pytest.approx(stats.sem([1, 0, 1, 1]))


def test_a_single_value_has_no_standard_error():
    mean = Mean([2.0])
    assert mean == 2.0
    assert np.isnan(mean.standard_error)


def test_a_mean_prints_with_its_standard_error():
    mean = Mean([1.0, 2.0, 3.0])
    assert repr(mean) == str(mean) == f"{2:.4f} ± {1 / np.sqrt(3):.4f}"


@pytest.mark.parametrize("duplicate", [lambda mean: pickle.loads(pickle.dumps(mean)), copy.copy, copy.deepcopy])
def test_a_copy_of_a_mean_keeps_its_values(duplicate):
    mean = Mean(VALUES)
    copied = duplicate(mean)
    assert type(copied) is Mean
    assert copied == mean
    assert copied.standard_error == mean.standard_error
    assert np.array_equal(copied.values, mean.values)


# Losses


def _same_start(a, b):
    return float(a[:1] == b[:1])


@pytest.mark.parametrize(
    ("kernel", "A", "B"),
    [
        (Linear(), VALUES.reshape(5, 4), VALUES[::-1].reshape(5, 4)),
        (Gaussian(0.3), VALUES.reshape(5, 4), VALUES[::-1].reshape(5, 4)),
        (GaussianTanimoto(), TRUE, PREDICTED),
        (Tanimoto(), sparse.csr_matrix(TRUE), sparse.csr_matrix(PREDICTED)),
        (Kemeny(partial=True), 9 + VALUES.reshape(5, 4), 9 + VALUES[::-1].reshape(5, 4)),
        (Pairwise(_same_start), ["ab", "b", "c"], ["a", "ba", "a"]),
        (Linear(), VALUES, VALUES[::-1]),
    ],
    ids=["linear", "gaussian", "gaussian tanimoto", "tanimoto csr", "kemeny", "words", "numbers"],
)
def test_kernel_loss_by_the_block_of_distances(kernel, A, B):
    block = kernel.squared_distances(A, B)
    loss = kernel_loss(A, B, kernel)
    np.testing.assert_allclose(loss.values, np.diagonal(block), atol=1e-12)
    assert loss == pytest.approx(np.mean(np.diagonal(block)))


def test_kernel_loss_of_the_linear_kernel_is_the_squared_error():
    A, B = VALUES.reshape(5, 4), VALUES[::-1].reshape(5, 4)
    assert kernel_loss(A, B, Linear()) == pytest.approx(4 * sklearn_metrics.mean_squared_error(A, B))


def test_kernel_loss_of_perfect_predictions_is_zero():
    assert kernel_loss(TRUE, TRUE.copy(), GaussianTanimoto()) == 0


@every_form
def test_f1_score_is_sklearns_average_over_samples(forms):
    expected = sklearn_metrics.f1_score(TRUE, PREDICTED, average="samples", zero_division=1)
    score = f1_score(forms[0](TRUE), forms[1](PREDICTED))
    assert score == pytest.approx(expected, rel=1e-14)
    assert len(score.values) == len(TRUE)


@every_form
def test_f1_score_of_empty_rows(forms):
    empty, full = np.zeros((2, 3), int), np.array([[0, 0, 0], [1, 0, 1]])
    assert f1_score(forms[0](empty), forms[1](full)).values.tolist() == [1.0, 0.0]


@every_form
def test_jaccard_score_is_sklearns_average_over_samples(forms):
    expected = sklearn_metrics.jaccard_score(TRUE[1:], PREDICTED[1:], average="samples", zero_division=1)
    score = jaccard_score(forms[0](TRUE), forms[1](PREDICTED))
    assert score.values[0] == 1  # two empty sets
    assert np.mean(score.values[1:]) == pytest.approx(expected, rel=1e-14)


@PROPERTY
@given(seed=st.integers(0, 2**31), density=st.floats(0, 1))
def test_jaccard_score_follows_from_the_f1_score(seed, density):
    A, B = (np.random.default_rng([seed, part]).random((6, 4)) < density for part in range(2))
    f1 = f1_score(A, B).values
    np.testing.assert_allclose(jaccard_score(A, B).values, f1 / (2 - f1), atol=1e-14)


@every_form
def test_subset_accuracy_is_sklearns_accuracy(forms):
    expected = sklearn_metrics.accuracy_score(TRUE, PREDICTED)
    score = subset_accuracy(forms[0](TRUE), forms[1](PREDICTED))
    assert 0 < score == pytest.approx(expected, rel=1e-14)
    np.testing.assert_array_equal(score.values, (TRUE == PREDICTED).all(axis=1))


def test_subset_accuracy_ignores_stored_zeros():
    stored_zero = sparse.csr_matrix((np.array([0, 1]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    assert subset_accuracy([[0, 1, 0]], stored_zero) == 1


@every_form
def test_hamming_loss_is_sklearns(forms):
    expected = sklearn_metrics.hamming_loss(TRUE, PREDICTED)
    loss = hamming_loss(forms[0](TRUE), forms[1](PREDICTED))
    assert loss == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(loss.values, np.mean(TRUE != PREDICTED, axis=1), rtol=1e-14)


@pytest.mark.parametrize("dtype", [bool, np.uint8, float])
def test_hamming_loss_does_not_depend_on_the_dtype(dtype):
    assert hamming_loss(TRUE.astype(dtype), PREDICTED) == hamming_loss(TRUE, PREDICTED)


def rank_rows(n_items):
    return st.lists(st.integers(1, 4), min_size=n_items, max_size=n_items).filter(lambda row: len(set(row)) > 1)


@PROPERTY
@given(pairs=st.integers(2, 6).flatmap(lambda k: st.lists(st.tuples(rank_rows(k), rank_rows(k)), min_size=1)))
def test_kendall_tau_is_scipys_tau_b_with_ties(pairs):
    expected = [stats.kendalltau(a, b, variant="b").statistic for a, b in pairs]
    tau = kendall_tau([a for a, _ in pairs], [b for _, b in pairs])
    np.testing.assert_allclose(tau.values, expected, atol=1e-12)
    assert tau == pytest.approx(np.mean(expected), abs=1e-12)


def test_kendall_tau_without_ties_is_the_kemeny_kernel():
    rng = np.random.default_rng(0)
    A, B = ([rng.permutation(5) + 1 for _ in range(6)] for _ in range(2))
    np.testing.assert_allclose(kendall_tau(A, B).values, Kemeny().paired(A, B), atol=1e-14)


def test_kendall_tau_of_a_row_that_ties_all_is_undefined():
    tau = kendall_tau([[1, 2, 3], [1, 2, 3]], [[1, 1, 1], [1, 2, 3]])
    assert np.isnan(tau.values[0])
    assert tau.values[1] == 1
    with pytest.raises(ValueError, match="Y_true in row 1 does not prefer any item to another"):
        kendall_tau([[1, 2, 3], [1, 1, 1]], [[1, 2, 3], [1, 2, 3]])


# Top-k accuracy

distances_and_truth = st.lists(st.integers(0, 2), min_size=1, max_size=5).flatmap(
    lambda distances: st.tuples(st.just(distances), st.integers(0, len(distances) - 1))
)


def positions_of(cases):
    nearer = [sum(d < distances[truth] for d in distances) for distances, truth in cases]
    tied = [distances.count(distances[truth]) for distances, truth in cases]
    return TruthPositions(np.array(nearer, dtype=float), np.array(tied, dtype=float))


def hit_shares(distances, truth, k):
    """The share of hits over all orders of the candidates, each then sorted by distance."""
    hits = []
    for order in itertools.permutations(range(len(distances))):
        ranked = sorted(order, key=lambda candidate: distances[candidate])  # stable: ties keep the order
        hits.append(truth in ranked[:k])
    return np.mean(hits), np.max(hits), np.min(hits)


@PROPERTY
@given(cases=st.lists(distances_and_truth, min_size=1, max_size=4), k=st.integers(1, 6))
def test_top_k_accuracy_by_enumerating_the_orders_of_ties(cases, k):
    positions = positions_of(cases)
    expected, best, worst = np.array([hit_shares(distances, truth, k) for distances, truth in cases]).T
    np.testing.assert_allclose(top_k_accuracy(positions, k).values, expected, atol=1e-12)
    np.testing.assert_array_equal(top_k_accuracy(positions, k, "optimistic").values, best)
    np.testing.assert_array_equal(top_k_accuracy(positions, k, "pessimistic").values, worst)


@PROPERTY
@given(
    counts=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10)), min_size=1),
    k=st.integers(1, 30),
)
def test_the_policies_for_ties_are_ordered(counts, k):
    positions = TruthPositions(*np.array(counts, dtype=float).T)
    optimistic, expected, pessimistic = (
        top_k_accuracy(positions, k, ties).values for ties in ("optimistic", "expected", "pessimistic")
    )
    assert (optimistic <= 1).all()
    assert (optimistic >= expected).all()
    assert (expected >= pessimistic).all()
    assert (pessimistic >= 0).all()


@PROPERTY
@given(nearer=st.lists(st.integers(0, 20), min_size=1), k=st.integers(1, 30))
def test_the_policies_agree_without_ties(nearer, k):
    positions = TruthPositions(np.array(nearer, dtype=float), np.ones(len(nearer)))
    share = np.mean([count < k for count in nearer])
    assert all(top_k_accuracy(positions, k, ties) == pytest.approx(share) for ties in TIES)


@pytest.mark.parametrize("ties", TIES)
def test_the_accuracy_grows_with_k(ties):
    rng = np.random.default_rng(0)
    positions = TruthPositions(rng.integers(0, 9, 50).astype(float), rng.integers(1, 5, 50).astype(float))
    accuracies = [top_k_accuracy(positions, k, ties) for k in range(1, 14)]
    assert accuracies == sorted(accuracies)
    assert accuracies[-1] == 1


@pytest.mark.parametrize("ties", TIES)
def test_a_truth_that_is_not_a_candidate_is_never_hit(ties):
    positions = TruthPositions(nearer=np.array([np.inf, 0.0]), tied=np.array([0.0, 1.0]))
    assert top_k_accuracy(positions, 1000, ties).values.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("k", [1, 7, 25, None])
def test_the_reciprocal_rank_is_a_sum_of_accuracies(ties, k):
    """Summation by parts: MRR@k = Σ_{j<k} (1/j − 1/(j+1)) top-j + top-k/k."""
    rng = np.random.default_rng(1)
    positions = TruthPositions(rng.integers(0, 30, 60).astype(float), rng.integers(1, 6, 60).astype(float))
    positions.nearer[0], positions.tied[0] = np.inf, 0
    last = 40 if k is None else k  # no position is beyond 40
    weights = [1 / (j * (j + 1)) for j in range(1, last)]
    expected = sum(w * top_k_accuracy(positions, j, ties).values for j, w in enumerate(weights, 1))
    expected = expected + top_k_accuracy(positions, last, ties).values * (1 / last)
    values = mean_reciprocal_rank(positions, k, ties).values
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert values[0] == 0


def test_the_reciprocal_rank_needs_positions_and_a_count():
    with pytest.raises(TypeError, match="TruthPositions"):
        mean_reciprocal_rank([1.0, 2.0])
    with pytest.raises(ValueError, match="k"):
        mean_reciprocal_rank(TruthPositions(np.zeros(1), np.ones(1)), 0)
    with pytest.raises(ValueError, match="ties"):
        mean_reciprocal_rank(TruthPositions(np.zeros(1), np.ones(1)), ties="random")


# Bad input


@pytest.mark.parametrize("k", [0, -1, 1.5, "1", None, True], ids=repr)
def test_k_is_a_positive_integer(k):
    with pytest.raises(ValueError, match="k must be an integer ≥ 1; got"):
        top_k_accuracy(TruthPositions(np.zeros(1), np.ones(1)), k)


@pytest.mark.parametrize("ties", ["random", "", None], ids=repr)
def test_ties_is_one_of_the_policies(ties):
    with pytest.raises(ValueError, match="ties must be one of expected, optimistic, pessimistic; got"):
        top_k_accuracy(TruthPositions(np.zeros(1), np.ones(1)), 1, ties)


@pytest.mark.parametrize(
    "metric",
    [f1_score, jaccard_score, subset_accuracy, hamming_loss, kendall_tau, lambda a, b: kernel_loss(a, b, Linear())],
    ids=["f1", "jaccard", "subset", "hamming", "kendall", "kernel"],
)
def test_different_numbers_of_outputs_and_predictions_raise(metric):
    with pytest.raises(ValueError, match="Y_true has 3 outputs, Y_pred has 2"):
        metric(TRUE[:3], TRUE[:2])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (f1_score, r"5 columns.*4"),
        (jaccard_score, r"5 columns.*4"),
        (subset_accuracy, r"\(30, 5\) and \(30, 4\)"),
        (hamming_loss, r"\(30, 5\) and \(30, 4\)"),
        (kendall_tau, "Y_true ranks 5 items, Y_pred 4"),
        (lambda a, b: kernel_loss(a, b, Linear()), r"5 columns.*4"),
    ],
    ids=["f1", "jaccard", "subset", "hamming", "kendall", "kernel"],
)
def test_outputs_and_predictions_of_different_widths_raise(metric, message):
    with pytest.raises(ValueError, match=message):
        metric(TRUE, PREDICTED[:, :4])


@pytest.mark.parametrize(
    ("metric", "bad", "message"),
    [
        (f1_score, 2.0, "0/1 rows, but Y_pred"),
        (f1_score, np.nan, "Y_pred contains NaN"),
        (hamming_loss, np.nan, "Y_pred contains NaN"),
        (kendall_tau, np.inf, "Y_pred contains infinity"),
        (lambda a, b: kernel_loss(a, b, Linear()), np.nan, "Y_pred contains NaN"),
    ],
    ids=["f1 not a set", "f1", "hamming", "kendall", "kernel"],
)
def test_errors_name_the_bad_values(metric, bad, message):
    spoiled = PREDICTED.astype(float)
    spoiled[3, 3] = bad
    with pytest.raises(ValueError, match=message):
        metric(TRUE, spoiled)


# As scorers of scikit-learn


@pytest.mark.parametrize(
    ("metric", "reference"),
    [
        (f1_score, lambda a, b: sklearn_metrics.f1_score(a, b, average="samples", zero_division=1)),
        (hamming_loss, sklearn_metrics.hamming_loss),
        (subset_accuracy, sklearn_metrics.accuracy_score),
    ],
    ids=["f1", "hamming", "subset"],
)
def test_metrics_of_sets_score_in_cross_validation(metric, reference):
    model, X, folds = DummyClassifier(strategy="most_frequent"), np.zeros((30, 1)), KFold(3)
    Y = np.column_stack([TRUE, np.ones(30, int)])  # one label that all rows have, so that no prediction is empty
    ours = cross_val_score(model, X, Y, scoring=make_scorer(metric), cv=folds)
    theirs = cross_val_score(model, X, Y, scoring=make_scorer(reference), cv=folds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_kernel_loss_scores_in_cross_validation():
    X, Y, folds = np.zeros((20, 1)), VALUES.reshape(20, 1), KFold(4)
    scorer = make_scorer(kernel_loss, kernel=Linear(), greater_is_better=False)
    ours = cross_val_score(DummyRegressor(), X, Y, scoring=scorer, cv=folds)
    theirs = cross_val_score(DummyRegressor(), X, Y, scoring="neg_mean_squared_error", cv=folds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


# Other correlations of rankings


@PROPERTY
@given(pairs=st.integers(2, 6).flatmap(lambda k: st.lists(st.tuples(rank_rows(k), rank_rows(k)), min_size=1)))
def test_spearman_rho_is_scipys_with_ties(pairs):
    expected = [stats.spearmanr(a, b).statistic for a, b in pairs]
    rho = spearman_rho([a for a, _ in pairs], [b for _, b in pairs])
    np.testing.assert_allclose(rho.values, expected, atol=1e-12)


def test_pairwise_accuracy_counts_ties_half_and_ignores_ties_of_the_truth():
    assert pairwise_accuracy([[1, 2, 3]], [[1, 1, 2]]).values[0] == pytest.approx(2.5 / 3)
    assert pairwise_accuracy([[1, 2, 2]], [[1, 3, 2]]).values[0] == 1
    assert pairwise_accuracy([[1, 2, 3]], [[1, 1, 1]]).values[0] == 0.5
    assert np.isnan(spearman_rho([[1, 2, 3]], [[1, 1, 1]]).values[0])
    assert np.isnan(pairwise_accuracy([[1, 2, np.nan]], [[np.nan, 1, 2]]).values[0])  # no common pair


def test_pairwise_accuracy_of_full_rankings_is_kendalls_tau_rescaled():
    rng = np.random.default_rng(0)
    A, B = ([rng.permutation(6) + 1 for _ in range(9)] for _ in range(2))
    np.testing.assert_allclose(pairwise_accuracy(A, B).values, (1 + kendall_tau(A, B).values) / 2, atol=1e-14)


@pytest.mark.parametrize("metric", [kendall_tau, spearman_rho, pairwise_accuracy])
def test_masked_ranks_are_rejected(metric):
    ranks = np.array([[1, 2, 3], [3, 1, 2]])
    masked = np.ma.masked_array(ranks, mask=[[0, 1, 0], [0, 0, 0]])
    for arguments in ((masked, ranks), (ranks, masked)):
        with pytest.raises(TypeError, match="is a masked array with 1 masked entries"):
            metric(*arguments)
    assert float(metric(masked.astype(float).filled(np.nan), ranks)) == 1.0
