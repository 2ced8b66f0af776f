"""From scores to label sets: thresholds that maximize the mean F1 of held-out examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psilearn.metrics import f1_score
from psilearn.utils import validation
from psilearn_lab.arrays import Array, Mask

MIN_INCREASE = 1e-12  # of the mean F1; smaller ones are rounding errors


def apply_threshold(scores: Array, threshold: float | Array, allow_empty: bool = True) -> Mask:
    """Return the label sets of scores that are at least a threshold.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        The score of each label.
    threshold : float or ndarray of shape (L,)
        The smallest score of a label that is predicted, for all labels or for each label.
    allow_empty : bool, default=True
        Whether a row may have no label. If false, a row without a score that reaches the threshold gets the label with
        the highest score (the first of several equal ones).

    Returns
    -------
    ndarray of bool of shape (n, L)
        One label set per row.

    See Also
    --------
    best_threshold : Find the threshold.
    best_label_thresholds : Find one threshold per label.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import apply_threshold
    >>> scores = np.array([[0.9, 0.6], [0.1, 0.3]])
    >>> apply_threshold(scores, 0.5).astype(int)
    array([[1, 1],
           [0, 0]])
    >>> apply_threshold(scores, 0.5, allow_empty=False).astype(int)
    array([[1, 1],
           [0, 1]])
    """
    scores = validation.check_array_of_numbers(scores, "scores", ndim=2, allow_infinite=True)
    validation.check_bool(allow_empty, "allow_empty")
    limits = validation.check_array_of_numbers(np.atleast_1d(threshold), "threshold", ndim=1, allow_infinite=True)
    if len(limits) not in (1, scores.shape[1]):
        raise ValueError(f"threshold must be one number, or one per label, {scores.shape[1]}; got {len(limits)}.")
    labels: Mask = scores >= limits
    if not allow_empty:
        empty = np.flatnonzero(~labels.any(axis=1))
        labels[empty, np.argmax(scores[empty], axis=1)] = True
    return labels


def best_threshold(Y: Array, scores: Array, allow_empty: bool = True) -> float:
    """Return the threshold that maximizes the mean example-based F1 of label sets, found exactly.

    With the labels of an example in descending order of score, predicting the first j gives F1ⱼ = 2·TPⱼ / (j + |y|).
    Lowering the threshold past a score adds the difference of two neighbors of that example, so one sort of all scores
    and one running sum give the mean F1 at every threshold. If empty label sets are not allowed, the label with the
    highest score is predicted at every threshold: its difference is zero. Cost: n·L·log(n·L) comparisons for n examples
    and L labels; memory: about 9nL numbers.

    Parameters
    ----------
    Y : ndarray of shape (n, L)
        The true label sets, rows of 0 and 1.
    scores : ndarray of shape (n, L)
        The score of each label.
    allow_empty : bool, default=True
        Whether a row may have no label; otherwise the label with the highest score is predicted for a row without a
        score that reaches the threshold.

    Returns
    -------
    float
        The threshold, in the middle between two scores; −∞ if predicting all labels is best, ∞ if it is best that no
        score reaches the threshold.

    See Also
    --------
    apply_threshold : The label sets for a threshold.
    best_label_thresholds : Find one threshold per label.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import best_threshold
    >>> best_threshold(np.array([[1, 0, 0], [1, 1, 0]]), np.array([[0.9, 0.2, 0.1], [0.8, 0.4, 0.1]]))
    0.30000000000000004
    """
    Y, scores = _check_scores(Y, scores)
    validation.check_bool(allow_empty, "allow_empty")
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(Y, order, axis=1), axis=1)  # (n, L)  TPⱼ
    sizes = hits[:, -1:]
    f1 = 2 * hits / (np.arange(1, Y.shape[1] + 1) + sizes)
    without_scores = (
        np.where(sizes == 0, 1.0, 0.0) if allow_empty else f1[:, :1]
    )  # F1 if no score reaches the threshold
    gains = np.diff(f1, axis=1, prepend=without_scores)

    values = np.take_along_axis(scores, order, axis=1).ravel()
    descending = np.argsort(-values, kind="stable")
    return _best_cut(values[descending], gains.ravel()[descending])


def best_label_thresholds(
    Y: Array, scores: Array, allow_empty: bool = True, *, min_positives: int = 5, max_rounds: int = 3
) -> Array:
    """Return one threshold per label that increases the mean example-based F1 of label sets.

    The thresholds start at the best common one. Then the threshold of each label in turn is replaced by the best one
    for the current thresholds of all other labels, found exactly by one sort, until no replacement increases the mean
    F1. Cost of a round: n·L·log n comparisons for n examples and L labels.

    Parameters
    ----------
    Y : ndarray of shape (n, L)
        The true label sets, rows of 0 and 1.
    scores : ndarray of shape (n, L)
        The score of each label.
    allow_empty : bool, default=True
        Whether a row may have no label; otherwise the label with the highest score is predicted for a row without a
        score that reaches its threshold.
    min_positives : int, default=5
        The number of examples with a label from which on it has a threshold of its own. Rarer labels keep the common
        one, because a threshold for a few examples fits only these.
    max_rounds : int, default=3
        The largest number of rounds over all labels. More rounds fit the given examples more closely.

    Returns
    -------
    ndarray of shape (L,)
        The thresholds; ±∞ where all or none of the given examples get the label.

    See Also
    --------
    best_threshold : The best threshold for all labels.
    apply_threshold : The label sets for thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import best_label_thresholds
    >>> Y, scores = np.array([[1, 0], [0, 1]]), np.array([[0.9, 0.2], [0.7, 0.4]])
    >>> best_label_thresholds(Y, scores, min_positives=1).round(2)
    array([0.8, 0.3])
    """
    Y, scores = _check_scores(Y, scores)
    validation.check_index(min_positives, "min_positives")
    validation.check_count(max_rounds, "max_rounds")
    thresholds = np.full(Y.shape[1], best_threshold(Y, scores, allow_empty))
    sets = _LabelSets(Y, scores, scores >= thresholds, allow_empty)
    frequent = np.flatnonzero(Y.sum(axis=0) >= min_positives).tolist()
    for _ in range(max_rounds):
        n_improved = sum(_improve_label(sets, label, thresholds) for label in frequent)
        if not n_improved:
            break
    return thresholds


@dataclass
class _LabelSets:
    """Predicted label sets and the counts from which the F1 of each row follows."""

    Y: Array
    scores: Array
    labels: Mask  # before the rule for empty rows
    allow_empty: bool

    def __post_init__(self) -> None:
        self.true_sizes = self.Y.sum(axis=1)
        self.hits, self.sizes = np.sum(self.Y * self.labels, axis=1), self.labels.sum(axis=1)
        if self.allow_empty:
            self.without_labels = np.where(self.true_sizes == 0, 1.0, 0.0)
        else:
            top = self.Y[np.arange(len(self.Y)), np.argmax(self.scores, axis=1)]
            self.without_labels = 2 * top / (1 + self.true_sizes)

    def replace(self, label: int, column: Mask) -> None:
        """Give one label to other rows."""
        change = column.astype(np.int64) - self.labels[:, label]
        self.hits, self.sizes = self.hits + change * self.Y[:, label], self.sizes + change
        self.labels[:, label] = column

    def gains(self, label: int) -> Array:
        """Return by how much the F1 of each row is larger with a label than without it."""
        y, has = self.Y[:, label], self.labels[:, label]
        hits, sizes = self.hits - has * y, self.sizes - has
        without = np.where(sizes > 0, 2 * hits / np.maximum(sizes + self.true_sizes, 1), self.without_labels)
        return np.asarray(2 * (hits + y) / (sizes + 1 + self.true_sizes) - without)


def _improve_label(sets: _LabelSets, label: int, thresholds: Array) -> bool:
    """Replace the threshold of a label by the best one for the given others; return whether the mean F1 increases."""
    gains, column = sets.gains(label), sets.scores[:, label]
    order = np.argsort(-column, kind="stable")
    threshold = _best_cut(column[order], gains[order])
    labels = column >= threshold
    increase = gains[labels].sum() - gains[sets.labels[:, label]].sum()
    if increase <= len(column) * MIN_INCREASE:
        return False
    thresholds[label] = threshold
    sets.replace(label, labels)
    return True


def _best_cut(values: Array, gains: Array) -> float:
    """Return the threshold of descending values with the largest sum of the gains of all values above it."""
    totals = np.cumsum(gains)
    ends = np.flatnonzero(np.append(np.diff(values) < 0, True))  # a threshold cannot separate equal scores
    best = int(np.argmax(totals[ends]))
    if totals[ends[best]] < 0:  # best if no score reaches the threshold
        return np.inf
    if best + 1 == len(ends):  # best with all labels
        return -np.inf
    lowest, next_lower = values[ends[best]], values[ends[best + 1]]
    middle = next_lower + (lowest - next_lower) / 2
    return float(middle if middle > next_lower else lowest)


def best_f1_error(Y: Array, scores: Array, allow_empty: bool = True) -> float:
    """Return 1 − F1 of the label sets at the best threshold."""
    labels = apply_threshold(scores, best_threshold(Y, scores, allow_empty), allow_empty)
    return 1 - float(f1_score(Y, labels))


def _check_scores(Y: Array, scores: Array) -> tuple[Array, Array]:
    """Return label rows and finite scores of the same shape; raise an error about one of them otherwise."""
    Y = validation.check_array_of_numbers(Y, "Y", ndim=2)
    scores = validation.check_array_of_numbers(scores, "scores", ndim=2)
    if Y.shape != scores.shape or not ((Y == 0) | (Y == 1)).all():
        raise ValueError(f"Y must hold 0 and 1 only, in the shape {scores.shape} of scores; got shape {Y.shape}.")
    return Y, scores
