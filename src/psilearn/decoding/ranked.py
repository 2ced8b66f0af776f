"""All candidates of an example from the nearest to the farthest: distances, margins, positions and conformal scores.

:mod:`psilearn.conformal` defines the scores, and describes the sets that a limit on them gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilearn._backend import Compute
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Index, Samples, concat, take
from psilearn.decoding.candidates import Candidates, RankedRow
from psilearn.metrics import TIES

LIMIT_ROUNDING = 1e-9  # scores above the limit by at most this part of 1 + limit are within it


@dataclass(frozen=True)
class RankedCandidates:
    """The nearest candidates of one example, nearest first; candidates at the same distance by their indices.

    Parameters
    ----------
    indices : ndarray of shape (k,)
        The index of each candidate among the candidates of the example.
    distances : ndarray of shape (k,)
        The squared distances |G*z(x) − ψ(y)|² in the output space, ascending.
    margins : ndarray of shape (k,)
        How much farther the next candidate is: 0 if it ties, ∞ after the last candidate of all.
    positions : ndarray of shape (k,)
        The positions, 1 for the nearest; candidates that tie share one position.
    scores : ndarray of shape (k,)
        The conformal scores, at least 0 and ascending.
    in_set : ndarray of bool of shape (k,) or None
        Whether each candidate is in the conformal set. None if the model is not calibrated.
    n_candidates : int
        The number of candidates of the example, of which k are here.
    set_size : int or None
        The number of candidates in the conformal set. None if the model is not calibrated.
    candidates : array, CSR matrix or sequence
        The candidates of the example that the indices refer to.

    See Also
    --------
    ranked_candidates : Rank the candidates of predicted embeddings.
    join_rankings : Join the rankings of parts of the candidates.
    psilearn.OEL.rank_candidates : Rank the candidates of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.decoding import SharedCandidates, ranked_candidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> candidates = SharedCandidates(np.array([[2.0], [0.0], [2.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> ranked = next(ranked_candidates(np.array([[0.5]]), candidates, NUMPY))
    >>> ranked.indices, ranked.positions
    (array([1, 0, 2]), array([1. , 2.5, 2.5]))
    >>> ranked.margins
    array([ 2.,  0., inf])
    """

    indices: Index
    distances: Array
    margins: Array
    positions: Array
    scores: Array
    in_set: Any
    n_candidates: int
    set_size: int | None
    candidates: Samples

    @property
    def outputs(self) -> Samples:
        """The candidates themselves, nearest first, in the form in which they were given."""
        return take(self.candidates, self.indices)


def ranked_candidates(
    Z: Array,
    candidates: Candidates,
    compute: Compute,
    *,
    k: int | None = None,
    ties: str = "expected",
    limit: float | None = None,
) -> Iterator[RankedCandidates]:
    """Rank the candidates of each example by their distance to its prediction.

    Cost: that of :meth:`Candidates.nearest` with all candidates. Memory: ``working_memory``.

    Parameters
    ----------
    Z : array of shape (q, p)
        The predicted embeddings z(x), one row per example.
    candidates : Candidates
        The candidates, with the embedding of the model.
    compute : Compute
        Precision and device.
    k : int, default=None
        The number of nearest candidates to return per example. None returns all.
    ties : {"expected", "optimistic", "pessimistic"}, default="expected"
        The position of candidates that tie: the mean of their places, the first of them or the last one.
    limit : float, default=None
        The largest conformal score in a set. None if the model is not calibrated.

    Returns
    -------
    iterator of RankedCandidates
        The ranked candidates of each example.

    See Also
    --------
    RankedCandidates : The fields of the result.
    psilearn.conformal.threshold : Compute the limit for a coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.decoding import SharedCandidates, ranked_candidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> candidates = SharedCandidates(np.array([[2.0], [0.0], [3.0]]), Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> [ranked.indices.tolist() for ranked in ranked_candidates(np.array([[0.5], [3.0]]), candidates, NUMPY, k=2)]
    [[1, 0], [2, 0]]
    """
    validation.check_option(ties, TIES, "ties")
    limit = None if limit is None else validation.check_real(limit, "limit")
    n_kept = None if k is None else validation.check_count(k, "k")
    rows = enumerate(candidates.ranked(Z, compute))
    return (_rank(row, candidates.outputs_of(i), n_kept, ties, limit) for i, row in rows)


def join_rankings(
    parts: Sequence[RankedCandidates], *, k: int | None = None, ties: str = "expected", limit: float | None = None
) -> RankedCandidates:
    """Join the rankings of the candidates of one example, which were ranked in parts, into one ranking.

    Each part may have its own prediction, for example if the example has several possible descriptions. Candidates of
    different parts are compared by their distances.

    Parameters
    ----------
    parts : sequence of RankedCandidates
        Rankings of all candidates of each part (``k=None``). The candidates of the result are those of the first part,
        then those of the second part, and so on.
    k : int, default=None
        The number of nearest candidates to return. None returns all.
    ties : {"expected", "optimistic", "pessimistic"}, default="expected"
        The position of candidates that tie: the mean of their places, the first of them or the last one.
    limit : float, default=None
        The largest conformal score in a set. None if the model is not calibrated.

    Returns
    -------
    RankedCandidates
        The ranked candidates of all parts.

    Raises
    ------
    ValueError
        If there is no part, or a part does not have all of its candidates.

    See Also
    --------
    ranked_candidates : Rank the candidates of each example.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn._backend import NUMPY
    >>> from psilearn.decoding import PerExampleCandidates, join_rankings, ranked_candidates
    >>> from psilearn.embedding import Embedding
    >>> from psilearn.kernels import Linear
    >>> sets = PerExampleCandidates([np.array([[2.0]]), np.array([[0.0], [3.0]])])
    >>> candidates = sets.for_embedding(Embedding(Linear(), np.eye(1), np.eye(1)))
    >>> join_rankings(list(ranked_candidates(np.array([[0.5], [0.5]]), candidates, NUMPY))).indices
    array([1, 0, 2])
    """
    validation.check_option(ties, TIES, "ties")
    limit = None if limit is None else validation.check_real(limit, "limit")
    n_kept = None if k is None else validation.check_count(k, "k")
    if not isinstance(parts, list | tuple) or not all(isinstance(part, RankedCandidates) for part in parts):
        raise TypeError(f"parts must be a list of RankedCandidates; got {parts!r:.80}.")
    if not parts or any(len(part.indices) < part.n_candidates for part in parts):
        raise ValueError("parts must be rankings of all candidates, at least one; rank them with k=None.")
    starts = np.cumsum([0, *(part.n_candidates for part in parts[:-1])])
    indices = np.concatenate([part.indices + start for part, start in zip(parts, starts, strict=True)])
    distances = np.concatenate([part.distances for part in parts])
    order = np.lexsort((indices, distances))
    distances = distances[order]
    first, last = (np.searchsorted(distances, distances, side=side) for side in ("left", "right"))
    row = RankedRow(indices[order], distances, first, last)
    return _rank(row, concat([part.candidates for part in parts]), n_kept, ties, limit)


def _rank(row: RankedRow, outputs: Samples, k: int | None, ties: str, limit: float | None) -> RankedCandidates:
    """Return the k nearest candidates of one example."""
    first, last = row.starts + 1.0, row.stops.astype(np.float64)
    positions: Any = {"expected": (first + last) / 2, "optimistic": first, "pessimistic": last}[ties]
    margins = np.append(np.diff(row.distances), np.inf)  # exactly 0 within ties
    scores = conformal_scores(row)
    in_set = None if limit is None else is_within(scores, limit)
    top = slice(0, k)
    return RankedCandidates(
        indices=row.indices[top],
        distances=row.distances[top],
        margins=margins[top],
        positions=positions[top],
        scores=scores[top],
        in_set=None if in_set is None else in_set[top],
        n_candidates=len(scores),
        set_size=None if in_set is None else int(in_set.sum()),
        candidates=outputs,
    )


def conformal_scores(row: RankedRow) -> Array:
    """Return the conformal scores of the candidates of one example, (c,).

    Candidates that tie have the same distance, that of the first: the root would magnify rounding errors.
    """
    return np.asarray(row.stops * np.sqrt(row.distances - row.distances[:1]), dtype=np.float64)


def is_within(scores: Array, limit: float) -> Any:
    """Return which scores are at most ``limit``, up to rounding; none for a negative limit."""
    return scores <= limit + (LIMIT_ROUNDING * (1 + limit) if limit >= 0 else 0)
