"""The position of the true output among candidates, and how often it is among the first k."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn.metrics.mean import Mean

TIES = ("expected", "optimistic", "pessimistic")


class TruthPositions(NamedTuple):
    """Position of the true output among the distinct candidates of each example.

    Parameters
    ----------
    nearer : ndarray of shape (n,)
        The number of candidates that are strictly nearer than the true output; ∞ if the true output is not among the
        candidates.
    tied : ndarray of shape (n,)
        The number of candidates at the distance of the true output, including the true output itself; 0 if it is not
        among the candidates.

    See Also
    --------
    top_k_accuracy : How often the true output is among the first k candidates.

    Examples
    --------
    The first true output is nearest; the second shares the positions 2 and 3 with one other candidate:

    >>> import numpy as np
    >>> from psilearn.metrics import TruthPositions
    >>> positions = TruthPositions(nearer=np.array([0.0, 1.0]), tied=np.array([1.0, 2.0]))
    >>> positions.nearer + 1
    array([1., 2.])
    """

    nearer: Array
    tied: Array


def top_k_accuracy(positions: TruthPositions, k: int, ties: str = "expected") -> Mean:
    """Return how often the true output is among the k nearest candidates, with an explicit policy for ties.

    Parameters
    ----------
    positions : TruthPositions
        The positions of the true outputs, as returned by ``model.truth_positions(X, y, candidates)``.
    k : int
        The number of nearest candidates to search for the true output.
    ties : {"expected", "optimistic", "pessimistic"}, default="expected"
        How candidates at the same distance as the true output are ordered: at random, where the probability of a hit
        is counted ("expected"), all behind the true output ("optimistic"), or all before it ("pessimistic").

    Returns
    -------
    Mean
        The share of hits, with its standard error.

    See Also
    --------
    TruthPositions : The positions that are counted.
    mean_reciprocal_rank : The mean of 1/position.

    Examples
    --------
    The true output shares the second place with one other candidate:

    >>> import numpy as np
    >>> from psilearn.metrics import TruthPositions, top_k_accuracy
    >>> positions = TruthPositions(nearer=np.array([1.0]), tied=np.array([2.0]))
    >>> [float(top_k_accuracy(positions, 2, ties)) for ties in ("expected", "optimistic", "pessimistic")]
    [0.5, 1.0, 0.0]
    """
    validation.check_count(k, "k")
    _check_positions(positions, ties)
    return Mean(hits(positions, k, ties))


def mean_reciprocal_rank(positions: TruthPositions, k: int | None = 25, ties: str = "expected") -> Mean:
    """Return the mean of 1/position of the true outputs, where positions beyond k count 0.

    Parameters
    ----------
    positions : TruthPositions
        The positions of the true outputs, as returned by ``model.truth_positions(X, y, candidates)``.
    k : int or None, default=25
        The last position that counts: MRR@k. None counts all positions.
    ties : {"expected", "optimistic", "pessimistic"}, default="expected"
        How candidates at the same distance as the true output are ordered: at random, where the mean of 1/position is
        counted ("expected"), all behind the true output ("optimistic"), or all before it ("pessimistic").

    Returns
    -------
    Mean
        The mean reciprocal rank, with its standard error.

    See Also
    --------
    top_k_accuracy : How often the true output is among the first k candidates.

    Examples
    --------
    The first true output is nearest, and the second shares the positions 2 and 3 with one other candidate:

    >>> import numpy as np
    >>> from psilearn.metrics import TruthPositions, mean_reciprocal_rank
    >>> positions = TruthPositions(nearer=np.array([0.0, 1.0]), tied=np.array([1.0, 2.0]))
    >>> round(float(mean_reciprocal_rank(positions)), 4)
    0.7083
    """
    _check_positions(positions, ties)
    limit = np.inf if k is None else validation.check_count(k, "k")
    tied = np.maximum(positions.tied, 1)  # 0 only if the truth is not a candidate, and then nearer = ∞
    if ties != "expected":
        place = positions.nearer + (1 if ties == "optimistic" else tied)
        return Mean(np.where(place <= limit, 1 / place, 0.0))
    last = np.minimum(positions.nearer + tied, limit)
    counted = positions.nearer < last  # and therefore finite
    sums = np.zeros(len(positions.nearer))
    sums[counted] = _harmonic(last[counted]) - _harmonic(positions.nearer[counted])
    return Mean(sums / tied)


def _harmonic(n: Array) -> Array:
    """Return 1 + 1/2 + … + 1/n."""
    return np.asarray(digamma(n + 1) + np.euler_gamma)


def _check_positions(positions: TruthPositions, ties: str) -> None:
    if not isinstance(positions, TruthPositions):
        raise TypeError(f"positions must be TruthPositions(nearer, tied); got {type(positions).__name__}.")
    validation.check_option(ties, TIES, "ties")


def hits(positions: TruthPositions, k: int, ties: str = "expected") -> Array:
    """Return the probability that each true output is among the first k candidates, in the shape of the positions."""
    tied = np.maximum(positions.tied, 1)  # 0 only if the truth is not a candidate, and then nearer = ∞
    if ties == "optimistic":
        return np.asarray(positions.nearer < k)
    if ties == "pessimistic":
        return np.asarray(positions.nearer + tied <= k)
    return np.clip((k - positions.nearer) / tied, 0, 1)
