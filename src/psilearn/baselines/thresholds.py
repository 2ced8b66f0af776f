"""From scores to sets of labels: the one threshold that makes the mean F1 of held-out examples largest."""

import numpy as np

from psilearn._linalg import Array


def best_threshold(Y: Array, scores: Array) -> float:
    """Return the t for which the mean example-based F1 of ``scores >= t`` is largest, found exactly.

    With an example's labels in descending order of score, taking the first j gives F1ⱼ = 2·TPⱼ / (j + |y|). Lowering t
    past a score adds the difference of two neighbours of that example, so one sort of all scores and one running sum
    give the mean F1 at every threshold: −∞ where all labels are best, ∞ where none are. Cost: n·L·log(n·L) comparisons
    for n examples and L labels, about 9nL numbers.

    Parameters
    ----------
    Y : array (n, L) of 0 and 1
    scores : array (n, L)

    Examples
    --------
    >>> best_threshold(np.array([[1, 0, 0], [1, 1, 0]]), np.array([[0.9, 0.2, 0.1], [0.8, 0.4, 0.1]]))
    0.30000000000000004
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    found = np.cumsum(np.take_along_axis(np.asarray(Y, dtype=np.float64), order, axis=1), axis=1)  # (n, L)  TPⱼ
    sizes = found[:, -1:]
    f1 = 2 * found / (np.arange(1, Y.shape[1] + 1) + sizes)
    gains = np.diff(f1, axis=1, prepend=np.where(sizes == 0, 1.0, 0.0))  # no label is right where there are none

    values = np.take_along_axis(scores, order, axis=1).ravel()
    descending = np.argsort(-values, kind="stable")
    values, totals = values[descending], np.cumsum(gains.ravel()[descending])
    ends = np.flatnonzero(np.append(np.diff(values) < 0, True))  # a threshold cannot part equal scores
    best = int(np.argmax(totals[ends]))
    if totals[ends[best]] < 0:  # better no label at all
        return np.inf
    if best + 1 == len(ends):  # every label
        return -np.inf
    lowest, next_lower = values[ends[best]], values[ends[best + 1]]
    middle = next_lower + (lowest - next_lower) / 2
    return float(middle if middle > next_lower else lowest)
