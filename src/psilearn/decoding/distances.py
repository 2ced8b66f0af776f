"""Squared distances in the output space, and what counts as a tie among them.

The distance of a candidate y from a prediction z is |G*z − ψ(y)|² = |z|² − 2⟨z, g(y)⟩ + k(y, y). Rounding makes equal
distances differ in the last bits, by a few ε(|z|² + k(y, y)), where ε is that of the precision of the embedding.
Distances that differ by at most the *slack* 32ε(|z|² + k(y, y)) are a tie, and a tie goes to the lowest index, whatever
the block sizes. Functions take NumPy arrays, and torch tensors where they say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psilearn._backend import array_namespace, to_device, to_numpy
from psilearn._linalg import Array
from psilearn._utils.samples import Index

ROUNDING_UNITS = 32  # of |z|² + k(y, y), by which equal distances may differ
TIE_TOLERANCE = ROUNDING_UNITS * float(np.finfo(np.float64).eps)  # the same for float64, as a factor
_EPSILON = {2: float(np.finfo(np.float16).eps), 4: float(np.finfo(np.float32).eps), 8: float(np.finfo(np.float64).eps)}


def tie_tolerance(*arrays: Any) -> float:
    """Return the part of |z|² + k(y, y) that may be rounding, for the coarsest precision of arrays or tensors."""
    return ROUNDING_UNITS * _EPSILON[min(array.dtype.itemsize for array in arrays)]


def to_distances(products: Any, lengths: Any, tolerance: float) -> tuple[Any, Any]:
    """Turn ⟨z, g(y)⟩ and |z|² + k(y, y) into squared distances, at least 0, and their slack, both in place.

    Arrays or tensors of one shape and of float64.
    """
    products *= -2
    products += lengths
    if isinstance(products, np.ndarray):
        np.maximum(products, 0, out=products)
    else:
        products.clamp_(min=0)
    lengths *= tolerance
    return products, lengths


def first_smallest(D: Any, slack: Any) -> tuple[Any, Any]:
    """Return the first column of each row that ties with the smallest entry, and this entry, both (q, 1).

    Arrays or tensors.
    """
    if isinstance(D, np.ndarray):
        least = D.min(axis=1, keepdims=True)
        return np.argmax(D - slack <= least, axis=1)[:, None], least
    xp = array_namespace(D)
    least = xp.min(D, axis=1, keepdims=True)
    return xp.argmax(xp.astype(D - slack <= least, xp.int8), axis=1, keepdims=True), least


def k_smallest(D: Array, slack: Array, k: int) -> tuple[Index, Array]:
    """Return the columns and values of the k smallest entries of each row of D (q, c), ascending; arrays.

    Two entries tie if they differ by at most the slack of the larger one. Ties are ordered by column, and tied entries
    get the value of the smallest of them, so that the values ascend and entries with equal values are the ties.
    ``numpy.argpartition`` alone would order ties at random.
    """
    if k == 1:
        return first_smallest(D, slack)
    if k < D.shape[1]:
        border = np.partition(D, k - 1, axis=1)[:, k - 1 : k]  # (q, 1)  the k-th smallest value
        below = D + slack < border
        at_border = ~below & (D - slack <= border)
        free = k - np.sum(below, axis=1, keepdims=True)
        selected = below | (at_border & (np.cumsum(at_border, axis=1) <= free))
        columns = np.nonzero(selected)[1].reshape(len(D), k)
    else:
        columns = np.broadcast_to(np.arange(k), D.shape)
    values, slack = (np.take_along_axis(part, columns, axis=1) for part in (D, slack))
    order = np.argsort(values, axis=1, kind="stable")
    values, slack = (np.take_along_axis(part, order, axis=1) for part in (values, slack))
    with np.errstate(invalid="ignore"):  # ∞ − ∞ where a row has fewer candidates
        starts = np.diff(values, axis=1, prepend=-np.inf) > slack
    run = np.cumsum(starts, axis=1)  # neighbors that differ by at most their slack form a run
    by_column = np.lexsort((np.take_along_axis(columns, order, axis=1), run), axis=1)
    first_of_run = np.maximum.accumulate(np.where(starts, np.arange(k), 0), axis=1)
    return (
        np.take_along_axis(columns, np.take_along_axis(order, by_column, axis=1), axis=1),
        np.take_along_axis(values, first_of_run, axis=1),
    )


def count_nearer(D: Any, slack: Any, truth: Any, truth_slack: Any) -> tuple[Array, Array]:
    """Return how many entries of each row of D (q, c) are below ``truth`` (q, 1), and how many tie with it.

    Both are 0 for NaN. Arrays or tensors; the counts are NumPy arrays.
    """
    if isinstance(D, np.ndarray):
        slack = np.maximum(slack, truth_slack)
        return np.count_nonzero(truth - slack > D, axis=1), np.count_nonzero(np.abs(D - truth) <= slack, axis=1)
    xp = array_namespace(D)
    truth, truth_slack = to_device(truth, D.device), to_device(truth_slack, D.device)
    slack = xp.maximum(slack, truth_slack)
    nearer, tied = truth - slack > D, abs(D - truth) <= slack
    return to_numpy(xp.count_nonzero(nearer, axis=1)), to_numpy(xp.count_nonzero(tied, axis=1))


def tie_runs(distances: Array) -> tuple[Index, Index]:
    """Return where the run of ties of each candidate starts and stops, (c,) each.

    ``distances`` (c,) ascend, and tied ones are equal, as :func:`k_smallest` returns them.
    """
    is_start = np.diff(distances, prepend=-np.inf) > 0
    starts = np.flatnonzero(is_start)
    run = np.cumsum(is_start) - 1
    return starts[run], np.append(starts[1:], len(distances))[run]
