"""The exact threshold of the best F1, compared with brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psilearn.metrics import f1_score
from psilearn_lab.baselines import LR, apply_threshold, best_label_thresholds, best_threshold
from psilearn_lab.baselines.thresholds import best_f1_error

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 5))
LABELS_AND_SCORES = SHAPES.flatmap(
    lambda s: st.tuples(arrays(int, s, elements=st.integers(0, 1)), arrays(float, s, elements=st.integers(-3, 3)))
)


def f1_at(Y: np.ndarray, scores: np.ndarray, threshold: float | np.ndarray, allow_empty: bool) -> float:
    """Return the mean F1 with a loop over rows that applies the rule for empty rows literally."""
    predicted = []
    for row in scores:
        labels = (row >= threshold).tolist()
        if not any(labels) and not allow_empty:
            labels[row.tolist().index(max(row))] = True
        predicted.append(labels)
    return float(f1_score(Y, predicted))


@given(LABELS_AND_SCORES, st.booleans())
def test_no_threshold_is_better(pair: tuple[np.ndarray, np.ndarray], allow_empty: bool) -> None:
    Y, scores = pair
    best = max(f1_at(Y, scores, t, allow_empty) for t in (*np.unique(scores), np.inf))
    threshold = best_threshold(Y, scores, allow_empty)
    assert np.isclose(f1_at(Y, scores, threshold, allow_empty), best, atol=1e-12)
    assert np.isclose(best_f1_error(Y, scores, allow_empty), 1 - best, atol=1e-12)


@given(LABELS_AND_SCORES, st.integers(-4, 4))
def test_a_row_without_labels_gets_the_highest_score(pair: tuple[np.ndarray, np.ndarray], threshold: int) -> None:
    scores = pair[1]
    with_empty, without_empty = (apply_threshold(scores, threshold, allow_empty) for allow_empty in (True, False))
    assert np.array_equal(with_empty, scores >= threshold)
    empty = ~with_empty.any(axis=1)
    assert np.array_equal(without_empty[~empty], with_empty[~empty])
    assert np.array_equal(without_empty[empty], np.eye(scores.shape[1], dtype=bool)[scores[empty].argmax(axis=1)])


def test_the_rule_for_empty_rows_changes_the_threshold() -> None:
    # the second row has low scores: a threshold below them would add wrong labels to the first row
    Y = np.array([[1, 0, 0], [0, 0, 1]])
    scores = np.array([[0.9, 0.5, 0.4], [0.1, 0.0, 0.3]])
    assert best_threshold(Y, scores, allow_empty=False) > 0.5
    assert best_f1_error(Y, scores, allow_empty=False) == 0
    assert best_f1_error(Y, scores) > 0


def test_the_threshold_is_in_the_middle_of_a_gap() -> None:
    Y, scores = np.array([[1, 0]]), np.array([[0.8, 0.2]])
    assert best_threshold(Y, scores) == 0.5


def test_the_threshold_separates_neighbouring_floats() -> None:
    high = np.nextafter(0.5, 1)
    assert best_threshold(np.array([[1, 0]]), np.array([[high, 0.5]])) == high


@pytest.mark.parametrize("allow_empty", [True, False])
def test_all_labels(allow_empty: bool) -> None:
    assert best_threshold(np.ones((3, 2), dtype=int), np.full((3, 2), 0.3), allow_empty) == -np.inf


def test_no_labels() -> None:
    assert best_threshold(np.zeros((3, 2), dtype=int), np.full((3, 2), 0.3)) == np.inf


@given(LABELS_AND_SCORES, st.booleans())
def test_no_threshold_of_a_single_label_is_better(pair: tuple[np.ndarray, np.ndarray], allow_empty: bool) -> None:
    Y, scores = pair
    if not allow_empty:
        Y[Y.sum(axis=1) == 0, 0] = 1
    thresholds = best_label_thresholds(Y, scores, allow_empty, min_positives=0, max_rounds=100)
    reached = f1_at(Y, scores, thresholds, allow_empty)
    assert reached >= f1_at(Y, scores, best_threshold(Y, scores, allow_empty), allow_empty) - 1e-12
    for label in range(Y.shape[1]):
        for value in (*np.unique(scores[:, label]), np.inf):
            changed = thresholds.copy()
            changed[label] = value
            assert f1_at(Y, scores, changed, allow_empty) <= reached + 1e-9


def test_rare_labels_keep_the_common_threshold() -> None:
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((40, 3)) < [0.6, 0.4, 0.1]).astype(int), rng.random((40, 3))
    counts, common = Y.sum(axis=0), best_threshold(Y, scores)
    thresholds = best_label_thresholds(Y, scores, min_positives=int(counts[1]))
    assert counts[2] < counts[1] and thresholds[2] == common
    assert np.all(thresholds[:2] != common)


def test_thresholds_per_label_follow_the_scale_of_each_label() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 1.5]).astype(int)
    one, per_label = (LR(1.0, thresholds=kind).fit(X, Y) for kind in ("one", "per_label"))
    assert np.ndim(one.threshold_) == 0 and per_label.threshold_.shape == (2,)
    assert per_label.validation_error_ <= one.validation_error_
    assert np.array_equal(per_label.predict(X), apply_threshold(per_label.predict_soft(X), per_label.threshold_))
    with pytest.raises(ValueError, match="thresholds must be one of one, per_label"):
        LR(thresholds="two").fit(X, Y)
