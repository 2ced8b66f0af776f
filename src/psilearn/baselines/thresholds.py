"""From scores to label sets: one threshold for all labels that maximizes the mean F1 of held-out examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psilearn._linalg import Array
from psilearn.metrics import f1_score


def apply_threshold(scores: Array, threshold: float, allow_empty: bool = True) -> NDArray[np.bool_]:
    """Return the label sets of scores that are at least a threshold.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        The score of each label.
    threshold : float
        The smallest score of a label that is predicted.
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

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import apply_threshold
    >>> scores = np.array([[0.9, 0.6], [0.1, 0.3]])
    >>> apply_threshold(scores, 0.5).astype(int)
    array([[1, 1],
           [0, 0]])
    >>> apply_threshold(scores, 0.5, allow_empty=False).astype(int)
    array([[1, 1],
           [0, 1]])
    """
    labels: NDArray[np.bool_] = scores >= threshold
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

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import best_threshold
    >>> best_threshold(np.array([[1, 0, 0], [1, 1, 0]]), np.array([[0.9, 0.2, 0.1], [0.8, 0.4, 0.1]]))
    0.30000000000000004
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(np.asarray(Y, dtype=np.float64), order, axis=1), axis=1)  # (n, L)  TPⱼ
    sizes = hits[:, -1:]
    f1 = 2 * hits / (np.arange(1, Y.shape[1] + 1) + sizes)
    without_scores = (
        np.where(sizes == 0, 1.0, 0.0) if allow_empty else f1[:, :1]
    )  # F1 if no score reaches the threshold
    gains = np.diff(f1, axis=1, prepend=without_scores)

    values = np.take_along_axis(scores, order, axis=1).ravel()
    descending = np.argsort(-values, kind="stable")
    values, totals = values[descending], np.cumsum(gains.ravel()[descending])
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
