"""The label set with the largest expected F1, found exactly: the general F-measure maximizer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psilearn._linalg import Array
from psilearn.utils import validation


def maximize_expected_f1(joint: Array, sizes: Array, empty: Array | None = None) -> NDArray[np.bool_]:
    """Return the label sets with the largest expected example-based F1, among all 2^L label sets.

    The expected F1 of a set h of size k is Σ_{i∈h} Δᵢₖ with Δᵢₖ = Σₛ 2·P(yᵢ=1, |y|=s)/(s + k), which is linear in h. So
    the best set of size k has the k labels with the largest Δᵢₖ, and the best of these L sets, or the empty set with
    P(y=∅), is the best of all. For k' > k and the largest size m of y, Δᵢₖ' ≤ (m + k)/(m + k') · Δᵢₖ, so that the sum
    of the k' largest Δᵢₖ bounds the expected F1 of all sets of size k'. Examples for which no larger size can be better
    are left out. Cost for each visited size: 2LS flops per example for S sizes of y, and the order of L numbers.

    Parameters
    ----------
    joint : ndarray of shape (n, L, S)
        The probability, not negative, that label i is present and that the set has the size ``sizes[s]``.
    sizes : ndarray of shape (S,)
        The sizes s ≥ 1 of label sets.
    empty : ndarray of shape (n,), default=None
        The probability of the empty set. None does not allow empty sets.

    Returns
    -------
    ndarray of bool of shape (n, L)
        One label set per row; the smallest one if several are best.

    See Also
    --------
    GFM : A baseline that estimates the probabilities.

    References
    ----------
    Waegeman, Dembczyński, Jachnik, Cheng and Hüllermeier, *On the Bayes-optimality of F-measure maximizers*, 2014.

    Examples
    --------
    The sets {0}, {0, 1} and {1, 2} have the probabilities 0.4, 0.3 and 0.3:

    >>> import numpy as np
    >>> from psilearn_lab.baselines import maximize_expected_f1
    >>> joint = np.array([[[0.4, 0.3], [0.0, 0.6], [0.0, 0.3]]])
    >>> maximize_expected_f1(joint, np.array([1, 2])).astype(int)
    array([[1, 1, 0]])
    """
    joint = validation.check_array_of_numbers(joint, "joint", ndim=3)
    sizes = validation.check_array_of_numbers(sizes, "sizes", ndim=1)
    if (joint < 0).any():
        raise ValueError(f"joint must have probabilities, which are not negative; got {joint.min():g}.")
    n, n_labels, _ = joint.shape
    if len(sizes) != joint.shape[2] or not (sizes >= 1).all():
        raise ValueError(
            f"sizes must have one number from 1 per set size of joint, {joint.shape[2]}; got {sizes!r:.80}."
        )
    best_value = np.full(n, -np.inf)
    if empty is not None:
        best_value = np.array(validation.check_array_of_numbers(empty, "empty", ndim=1))
        if len(best_value) != n:
            raise ValueError(f"empty must have one probability per row of joint, {n}; got {len(best_value)}.")
    labels = np.zeros((n, n_labels), dtype=np.bool_)
    rows = np.arange(n)  # those for which this or a larger size can be better
    for k in range(1, n_labels + 1):
        gains = joint @ (2 / (sizes + k))  # (rows, L)
        order = np.argsort(-gains, axis=1)
        totals = np.cumsum(np.take_along_axis(gains, order, axis=1), axis=1)  # of the 1, …, L largest gains
        better = np.flatnonzero(totals[:, k - 1] > best_value[rows])
        best_value[rows[better]] = totals[better, k - 1]
        labels[rows[better]] = False
        labels[rows[better, None], order[better, :k]] = True
        larger = np.arange(k + 1, n_labels + 1)
        bounds = totals[:, k:] * ((sizes.max(initial=1) + k) / (sizes.max(initial=1) + larger))
        can_gain = bounds.max(axis=1, initial=-np.inf) > best_value[rows]
        if not can_gain.all():
            rows, joint = rows[can_gain], joint[can_gain]
        if not len(rows):
            break
    return labels
