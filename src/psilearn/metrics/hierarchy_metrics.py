"""Metrics of label sets in a hierarchy, where each label counts with its ancestors."""

from __future__ import annotations

import numpy as np

from psilearn._backend import tensor_to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Samples
from psilearn.kernels import HierarchicalDice, Hierarchy
from psilearn.kernels.inner_products import paired_inner_products
from psilearn.metrics.mean import Mean, check_same_length


def hierarchical_f1(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> Mean:
    """Return the hierarchical F1 of label sets, the mean of 2|Ā∩B̄| / (|Ā| + |B̄|) with all ancestors.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.
    hierarchy : Hierarchy
        The parents of the labels.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. Two empty sets have the score 1.

    See Also
    --------
    hierarchical_precision : The share of predicted labels that are right.
    hierarchical_recall : The share of true labels that are predicted.
    psilearn.kernels.HierarchicalDice : The kernel whose mean this is.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> from psilearn.metrics import hierarchical_f1
    >>> hierarchical_f1([[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], Hierarchy([-1, 0, 0]))
    0.5833 ± 0.0833
    """
    common, n_true, n_predicted = _compare(Y_true, Y_pred, hierarchy)
    return Mean(_ratio(2 * common, n_true + n_predicted))


def hierarchical_precision(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> Mean:
    """Return the hierarchical precision of label sets, the mean of |Ā∩B̄| / |B̄| with all ancestors.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.
    hierarchy : Hierarchy
        The parents of the labels.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. An empty prediction has the precision 1.

    See Also
    --------
    hierarchical_recall : The share of true labels that are predicted.
    hierarchical_f1 : The harmonic mean of both, per example.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> from psilearn.metrics import hierarchical_precision
    >>> hierarchical_precision([[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], Hierarchy([-1, 0, 0]))
    0.7500 ± 0.2500
    """
    common, _, n_predicted = _compare(Y_true, Y_pred, hierarchy)
    return Mean(_ratio(common, n_predicted))


def hierarchical_recall(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> Mean:
    """Return the hierarchical recall of label sets, the mean of |Ā∩B̄| / |Ā| with all ancestors.

    Parameters
    ----------
    Y_true : array-like or CSR matrix of shape (n, L)
        The true label sets A, rows of 0 and 1.
    Y_pred : array-like or CSR matrix of shape (n, L)
        The predicted label sets B, rows of 0 and 1.
    hierarchy : Hierarchy
        The parents of the labels.

    Returns
    -------
    Mean
        The mean over the examples, with its standard error. The recall of an empty set is 1.

    See Also
    --------
    hierarchical_precision : The share of predicted labels that are right.
    hierarchical_f1 : The harmonic mean of both, per example.

    Examples
    --------
    >>> from psilearn.kernels import Hierarchy
    >>> from psilearn.metrics import hierarchical_recall
    >>> hierarchical_recall([[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], Hierarchy([-1, 0, 0]))
    0.5000 ± 0.0000
    """
    common, n_true, _ = _compare(Y_true, Y_pred, hierarchy)
    return Mean(_ratio(common, n_true))


def _compare(Y_true: Samples, Y_pred: Samples, hierarchy: Hierarchy) -> tuple[Array, Array, Array]:
    """Return |Ā∩B̄|, |Ā| and |B̄| of each example."""
    check_same_length(Y_true, Y_pred)
    kernel = HierarchicalDice(hierarchy)
    rows = [
        kernel.features(tensor_to_numpy(kernel.check(Y, name))) for Y, name in ((Y_true, "Y_true"), (Y_pred, "Y_pred"))
    ]
    common = np.asarray(paired_inner_products(*rows), dtype=np.float64)
    sizes = [np.asarray(part.sum(axis=1), dtype=np.float64).ravel() for part in rows]
    return common, sizes[0], sizes[1]


def _ratio(part: Array, whole: Array) -> Array:
    """Return part/whole, and 1 where the whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 1.0)
