"""Conformal candidate sets: as many candidates as it takes to hold the true output with a stated probability.

Split conformal prediction. The score of a candidate is how much farther it lies than the nearest one,
s(x, y) = |G*z(x) − ψ(y)|² − min_y' |G*z(x) − ψ(y')|² ≥ 0. Let t be the ⌈(n+1)·coverage⌉-th smallest score of the true
outputs of n calibration examples that the fit has not seen. Then {y : s(x, y) ≤ t} holds the true output of a new
example with probability at least ``coverage``, whatever the model and the distribution, as long as the new example
and the calibration examples are exchangeable. The probability is over all of them, not for one spectrum or molecule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from psilearn import checks
from psilearn.backend import row_blocks
from psilearn.decode import CandidateSet, CandidateSets, TopK, nearest
from psilearn.embed import Embedding
from psilearn.linalg import Array
from psilearn.samples import Index, Samples, match, n_samples, take


@dataclass(frozen=True)
class PredictionSets:
    """One set of candidates an example, nearest first."""

    indices: list[Index]  # places in the candidates, or in the example's own set
    distances: list[Array]  # |G*z(x) − ψ(y)|²
    threshold: float  # how much farther than the nearest a member may lie; ∞: every candidate
    coverage: float
    candidates: Any  # the shared collection, or CandidateSets

    @property
    def sizes(self) -> Index:
        """How many candidates each set holds, (q,)."""
        return np.array([len(index) for index in self.indices], dtype=np.intp)

    @property
    def outputs(self) -> list[Samples]:
        """The members of each set, in the form in which candidates were given."""
        shared = not isinstance(self.candidates, CandidateSets)
        return [
            take(self.candidates if shared else self.candidates.sets[i], index) for i, index in enumerate(self.indices)
        ]


def excess_of_truth(Z: Array, truth: Samples, candidates: CandidateSet | CandidateSets, embedding: Embedding) -> Array:
    """Return how much farther than the nearest candidate each true output lies, (q,); ∞ where it is no candidate."""
    scores = np.full(len(Z), np.inf)
    places = candidates.match(truth) if isinstance(candidates, CandidateSets) else match(truth, candidates.outputs)
    for rows, top in _all_distances(Z, candidates, embedding):
        hit = top.indices == places[rows, None]
        found = np.flatnonzero(hit.any(axis=1) & (places[rows] >= 0))
        own = top.distances[found, hit[found].argmax(axis=1)]
        scores[rows][found] = own - top.distances[found, 0]
    return scores


def threshold(scores: Array, coverage: float) -> float:
    """Return the ⌈(n+1)·coverage⌉-th smallest score; ∞ where n is too small for such a coverage.

    >>> threshold(np.array([0.1, 0.4, 0.2, 0.3]), 0.8), threshold(np.array([0.1]), 0.8)
    (0.4, inf)
    """
    coverage = checks.fraction(coverage, "coverage")
    place = ceil((len(scores) + 1) * coverage - 1e-9)
    if place > len(scores):
        return float("inf")
    return float(np.sort(scores)[place - 1]) if place else -1.0  # coverage 0: the empty set has it


def sets_within(
    Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding, limit: float, coverage: float
) -> PredictionSets:
    """Return the candidates that lie at most ``limit`` farther than the nearest."""
    indices: list[Index] = []
    distances: list[Array] = []
    for _, top in _all_distances(Z, candidates, embedding):
        # ≤: a score that equals the threshold is in, rounding apart
        room = limit + 1e-12 * (1 + top.distances[:, :1])
        inside = (top.distances - top.distances[:, :1] <= room) & (top.indices >= 0)
        indices += [row[kept] for row, kept in zip(top.indices, inside, strict=True)]
        distances += [row[kept] for row, kept in zip(top.distances, inside, strict=True)]
    given = candidates if isinstance(candidates, CandidateSets) else candidates.outputs
    return PredictionSets(indices, distances, limit, coverage, given)


def _all_distances(
    Z: Array, candidates: CandidateSet | CandidateSets, embedding: Embedding
) -> Iterator[tuple[slice, TopK]]:
    """Yield the distances of all candidates, nearest first, for blocks of queries within ``working_memory``."""
    sizes = [n_samples(one) for one in candidates.sets] if isinstance(candidates, CandidateSets) else [len(candidates)]
    for rows in row_blocks(len(Z), 128 * max(sizes)):
        some = CandidateSets(candidates.sets[rows]) if isinstance(candidates, CandidateSets) else candidates
        yield rows, nearest(Z[rows], some, embedding, max(sizes))
