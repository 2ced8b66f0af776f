"""Conformal sets of candidates: as many candidates as are needed to contain the true output with a given probability.

Split conformal prediction. Let D₁ ≤ D₂ ≤ … be the squared distances |G*z(x) − ψ(y)|² of the candidates of x. The score
of the j-th of them is

    s(x, yⱼ) = #{i : Dᵢ ≤ Dⱼ} · √(Dⱼ − D₁),

its position (the last one of those that tie) times how much farther it is than the nearest: 0 for the nearest, and
growing along the list. Let t be the ⌈(n+1)·coverage⌉-th smallest score of the true outputs of n calibration examples
that the fit has not used. Then {y : s(x, y) ≤ t} contains the true output of a new example with probability at least
``coverage``, whatever the model and the distribution, if the new example and the calibration examples are exchangeable.
The probability is over all of them, not for a single example. The position keeps sets small if there are many
candidates, the distance if one of them stands out: each alone gives larger sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from psilearn._backend import Compute
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, take
from psilearn.decoding import Candidates
from psilearn.decoding.ranked import LIMIT_ROUNDING, conformal_scores, is_within

__all__ = ["PredictionSets", "p_values", "prediction_sets", "scores_of_truth", "threshold"]


@dataclass(frozen=True)
class PredictionSets:
    """One set of candidates per example, nearest first.

    Parameters
    ----------
    indices : list of ndarray
        The indices of the members of each set among the candidates of its example.
    distances : list of ndarray
        Their squared distances |G*z(x) − ψ(y)|².
    threshold : float
        The largest score of a member; ∞ if the sets contain every candidate.
    coverage : float
        The requested probability that a set contains the true output.
    candidates : Candidates
        The candidates that the indices refer to.

    See Also
    --------
    psilearn.OEL.predict_set : Predict such sets.
    threshold : The threshold for a coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.conformal import prediction_sets
    >>> from psilearn.decoding import SharedCandidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> candidates = SharedCandidates(np.array([[2.0], [0.0], [9.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> sets = prediction_sets(np.array([[0.5]]), candidates, limit=3.0, coverage=0.9, compute=NUMPY)
    >>> sets.indices, sets.sizes
    ([array([1, 0])], array([2]))
    """

    indices: list[Index]
    distances: list[Array]
    threshold: float
    coverage: float
    candidates: Candidates

    @property
    def sizes(self) -> Index:
        """The number of candidates in each set, of shape (q,)."""
        return np.array([len(index) for index in self.indices], dtype=np.intp)

    @property
    def outputs(self) -> list[Samples]:
        """The members of each set, in the form in which candidates were given."""
        return [take(self.candidates.outputs_of(i), index) for i, index in enumerate(self.indices)]


def threshold(scores: Array, coverage: float) -> float:
    """Compute the threshold on scores for a coverage.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The scores of the true outputs of n calibration examples.
    coverage : float
        The probability, between 0 and 1, that a set contains the true output.

    Returns
    -------
    float
        The ⌈(n+1)·coverage⌉-th smallest score; ∞ if n is too small for the coverage, and −1 for the coverage 0, which
        the empty set has.

    See Also
    --------
    scores_of_truth : Compute the scores.
    prediction_sets : The sets of candidates with scores up to the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.conformal import threshold
    >>> threshold(np.array([0.1, 0.4, 0.2, 0.3]), 0.8), threshold(np.array([0.1]), 0.8)
    (0.4, inf)
    """
    coverage = validation.check_fraction(coverage, "coverage")
    scores = validation.check_array_of_numbers(scores, "scores", ndim=1, allow_infinite=True)
    position = ceil((len(scores) + 1) * coverage - 1e-9)
    if position > len(scores):
        return float("inf")
    return float(np.sort(scores)[position - 1]) if position else -1.0


def p_values(scores: Array, calibration_scores: Array) -> Array:
    """Compute the conformal p-values of scores.

    Parameters
    ----------
    scores : ndarray of shape (k,)
        The scores of candidates.
    calibration_scores : ndarray of shape (n,)
        The scores of the true outputs of n calibration examples, in ascending order.

    Returns
    -------
    ndarray of shape (k,)
        For each candidate (1 + number of calibration scores that are at least as large)/(n + 1). The set with coverage
        c consists of the candidates whose p-value is above 1 − c.

    See Also
    --------
    threshold : The threshold on scores for a coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.conformal import p_values
    >>> p_values(np.array([0.0, 2.0, 9.0]), np.array([0.0, 1.0, 3.0]))
    array([1.  , 0.5 , 0.25])
    """
    scores = validation.check_array_of_numbers(scores, "scores", ndim=1, allow_infinite=True)
    known = validation.check_array_of_numbers(calibration_scores, "calibration_scores", ndim=1, allow_infinite=True)
    if (known[1:] < known[:-1]).any():
        raise ValueError("calibration_scores must be in ascending order: pass np.sort(calibration_scores).")
    allowed = (1 - LIMIT_ROUNDING) * scores - LIMIT_ROUNDING  # rounding counts as in the sets; scores may be infinite
    n = len(known)
    return (1 + n - np.searchsorted(known, allowed, side="left")) / (n + 1)


def scores_of_truth(Z: Array, truth: Samples, candidates: Candidates, compute: Compute) -> Array:
    """Compute the score of each true output.

    Parameters
    ----------
    Z : array of shape (q, p)
        The predicted embeddings z(x), one row per example.
    truth : array, CSR matrix or sequence of q outputs
        The true outputs.
    candidates : Candidates
        The candidates, with the embedding of the model.
    compute : Compute
        Precision and device.

    Returns
    -------
    ndarray of shape (q,)
        The scores; ∞ for a true output that is not among its candidates.

    See Also
    --------
    threshold : The threshold on scores for a coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.conformal import scores_of_truth
    >>> from psilearn.decoding import SharedCandidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> candidates = SharedCandidates(np.array([[2.0], [0.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> scores_of_truth(np.array([[2.0], [2.0]]), np.array([[2.0], [0.0]]), candidates, NUMPY)
    array([0., 4.])
    """
    rows, indices = candidates.ranked(Z, compute), candidates.match(truth)
    if len(Z) != len(indices):
        raise ValueError(f"Z has {len(Z)} rows, truth has {len(indices)} outputs.")
    scores = np.full(len(Z), np.inf)
    for i, row in enumerate(rows):
        if indices[i] >= 0:
            scores[i] = conformal_scores(row)[np.argmax(row.indices == indices[i])]
    return scores


def prediction_sets(
    Z: Array, candidates: Candidates, limit: float, coverage: float, compute: Compute
) -> PredictionSets:
    """Select the candidates of each example whose score is at most a limit.

    Parameters
    ----------
    Z : array of shape (q, p)
        The predicted embeddings z(x), one row per example.
    candidates : Candidates
        The candidates, with the embedding of the model.
    limit : float
        The threshold on scores.
    coverage : float
        The coverage that the threshold was computed for.
    compute : Compute
        Precision and device.

    Returns
    -------
    PredictionSets
        One set per example.

    See Also
    --------
    threshold : The threshold on scores for a coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.conformal import prediction_sets
    >>> from psilearn.decoding import SharedCandidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> candidates = SharedCandidates(np.array([[2.0], [0.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> prediction_sets(np.array([[0.5]]), candidates, 0.0, 0.5, NUMPY).outputs
    [array([[0.]])]
    """
    limit, coverage = validation.check_real(limit, "limit"), validation.check_fraction(coverage, "coverage")
    indices: list[Index] = []
    distances: list[Array] = []
    for row in candidates.ranked(Z, compute):
        inside = is_within(conformal_scores(row), limit)
        indices.append(row.indices[inside])
        distances.append(row.distances[inside])
    return PredictionSets(indices, distances, limit, coverage, candidates)
