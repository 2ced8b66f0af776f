"""Metrics of label sets, given as 0/1 rows."""

from __future__ import annotations

import numpy as np

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.kernels.binary import Dice, Tanimoto
from psilearn.kernels.linear import Linear
from psilearn.metrics.mean import Mean, check_same_length


def f1_score(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the example-based F1 score of label sets, the mean of 2|A∩B| / (|A| + |B|).

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. Two empty sets have the score 1.

    See Also
    --------
    jaccard_score : The same with |A∩B| / |A∪B|.
    subset_accuracy : The share of label sets that are predicted exactly.
    hamming_loss : The share of single labels that are predicted wrongly.

    Examples
    --------
    >>> from psilearn.metrics import f1_score
    >>> f1_score([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.8333 ± 0.1667
    """
    return _mean_similarity(Dice(), Y_true, Y_pred)


def jaccard_score(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the example-based Jaccard score of label sets, the mean of |A∩B| / |A∪B|.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. Two empty sets have the score 1.

    See Also
    --------
    f1_score : The same with 2|A∩B| / (|A| + |B|).
    subset_accuracy : The share of label sets that are predicted exactly.

    Examples
    --------
    >>> from psilearn.metrics import jaccard_score
    >>> jaccard_score([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.7500 ± 0.2500
    """
    return _mean_similarity(Tanimoto(), Y_true, Y_pred)


def subset_accuracy(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the share of rows that are predicted exactly, all labels together.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true rows.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted rows.

    Returns
    -------
    Mean
        The share of the n rows that are equal, with its standard error.

    See Also
    --------
    hamming_loss : The share of single labels that are predicted wrongly.
    f1_score : A score that rewards label sets that are partly right.

    Examples
    --------
    >>> from psilearn.metrics import subset_accuracy
    >>> subset_accuracy([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.5000 ± 0.5000
    """
    n_wrong, _ = _count_wrong_labels(Y_true, Y_pred)
    return Mean(n_wrong == 0)


def hamming_loss(Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean share of labels that differ between true and predicted rows.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true rows.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted rows.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error.

    See Also
    --------
    subset_accuracy : The share of rows in which no label differs.
    f1_score : A score that ignores the labels which are absent from both sets.

    Examples
    --------
    >>> from psilearn.metrics import hamming_loss
    >>> hamming_loss([[1, 1, 0, 0]], [[1, 0, 0, 0]])
    0.2500 ± nan
    """
    n_wrong, n_labels = _count_wrong_labels(Y_true, Y_pred)
    return Mean(n_wrong / n_labels)


def _mean_similarity(kernel: Dice | Tanimoto, Y_true: Samples, Y_pred: Samples) -> Mean:
    """Return the mean of k(y, ŷ) over pairs of label sets."""
    check_same_length(Y_true, Y_pred)
    return Mean(kernel.paired(kernel.check(Y_true, "Y_true"), kernel.check(Y_pred, "Y_pred")))


def _count_wrong_labels(Y_true: Samples, Y_pred: Samples) -> tuple[Array, int]:
    """Return the number of entries that differ in each row, (n,), and the number of columns."""
    check_same_length(Y_true, Y_pred)
    check = Linear().check
    A, B = (check(tensor_to_numpy(Y), name, allow_1d=False) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred")))
    if A.shape != B.shape:
        raise ValueError(f"Y_true and Y_pred must have the same shape; got {A.shape} and {B.shape}.")
    return np.asarray((A != B).sum(axis=1)).ravel(), int(A.shape[1])
